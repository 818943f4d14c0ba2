/* The safe openers on the real file system: what is refused, and that a process which swaps files all the time
 * gains nothing by it; with openat2, and again in a child that has to do without. */
#include "check.h"

#include "files/files.h"

#include "proto/message.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define RACE_ROUNDS 30000
#define SECRET "secret"

static char base[] = "/tmp/lair-unit-XXXXXX";
static int outside = -1, root = -1; /* base, and base/root, which nothing may leave */

static void make_file(int directory, const char *name, const char *text)
{
	_cleanup_(fd_closep) int fd = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void test_paths(void)
{
	static const struct {
		const char *path, *expected; /* NULL: refused */
	} cases[] = {
		{"", "."},
		{".", "."},
		{"./", "."},
		{"a", "a"},
		{"a//b/./c/", "a/b/c"},
		{"/w", "."},
		{"/w/", "."},
		{"/w//a", "a"},
		{"...", "..."},
		{"..", NULL},
		{"a/..", NULL},
		{"../a", NULL},
		{"/", NULL},
		{"/wa", NULL},
		{"/etc", NULL},
		{"/w/../a", NULL},
		{"/w/a/../../..", NULL},
	};
	char out[PATH_MAX], deep[4 * PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = file_path(out, bytes_of(cases[i].path), "/w");

		CHECK(r == (cases[i].expected ? 0 : FILE_E_PATH));
		CHECK(r || !strcmp(out, cases[i].expected));
	}
	CHECK(file_path(out, bytes_of("/etc/x"), "/") == 0 && !strcmp(out, "etc/x"));
	CHECK(file_path(out, BYTES("a\0b"), NULL) == FILE_E_PATH);
	memset(deep, 'x', sizeof(deep));
	CHECK(file_path(out, (struct bytes){.data = deep, .size = NAME_MAX}, NULL) == 0);
	CHECK(file_path(out, (struct bytes){.data = deep, .size = NAME_MAX + 1}, NULL) == FILE_E_PATH);
	for (size_t i = 1; i < sizeof(deep); i += 2)
		deep[i] = '/';
	CHECK(file_path(out, (struct bytes){.data = deep, .size = 2 * FILE_DEPTH_MAX}, NULL) == 0);
	CHECK(file_path(out, (struct bytes){.data = deep, .size = 2 * FILE_DEPTH_MAX + 1}, NULL) == FILE_E_PATH);
	for (size_t i = 0; i < sizeof(deep); i++)
		deep[i] = i % 200 == 199 ? '/' : 'x';
	CHECK(file_path(out, (struct bytes){.data = deep, .size = PATH_MAX - 1}, NULL) == 0);
	CHECK(file_path(out, (struct bytes){.data = deep, .size = PATH_MAX + 100}, NULL) == FILE_E_PATH);
}

static int open_once(const char *path, uint64_t size_max)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;

	return file_open(&fd, &status, root, path, size_max);
}

static void test_refusals(void)
{
	_cleanup_(fd_closep) int fd = -1;

	make_file(root, "plain", "12345");
	CHECK(open_once("plain", 0) == 0 && open_once("plain", 5) == 0 && open_once("plain", 4) == FILE_E_SIZE);
	CHECK(open_once("nothing", 0) == -ENOENT && open_once("plain/x", 0) == -ENOTDIR);
	CHECK(open_once(".", 0) == FILE_E_KIND);
	CHECK(mkfifoat(root, "fifo", 0666) == 0 && open_once("fifo", 0) == FILE_E_KIND);
	CHECK(symlinkat("../secret", root, "link") == 0 && open_once("link", 0) == FILE_E_KIND);
	CHECK(symlinkat("plain", root, "near") == 0 && open_once("near", 0) == FILE_E_KIND);
	CHECK(symlinkat("..", root, "up") == 0 && open_once("up/secret", 0) == -ELOOP);
	CHECK(symlinkat("/proc/self/root", root, "magic") == 0 && open_once("magic/etc/passwd", 0) == -ELOOP);
	CHECK(linkat(root, "plain", root, "second", 0) == 0 && open_once("plain", 0) == FILE_E_LINKED);
	CHECK(unlinkat(root, "second", 0) == 0);
	make_file(root, "sparse", "");
	fd = openat(root, "sparse", O_WRONLY | O_CLOEXEC);
	CHECK(ftruncate(fd, 1LL << 40) == 0 && open_once("sparse", 0) == FILE_E_SPARSE);
	CHECK(open_once("sparse", 1 << 30) == FILE_E_SIZE);
	CHECK(ftruncate(fd, 1 << 20) == 0 && open_once("sparse", 0) == 0);
}

static int write_once(const char *path, const char *text)
{
	struct new_file file;
	int r = new_file_begin(&file, root, path, 0);

	if (!r)
		r = new_file_append(&file, bytes_of(text));
	if (!r)
		r = new_file_commit(&file, 0644);
	new_file_deinit(&file);
	return r;
}

static void test_writing(void)
{
	struct new_file file;
	struct stat status;

	CHECK(write_once("new/deep/file", "1") == 0 && open_once("new/deep/file", 0) == 0);
	CHECK(write_once("new/deep", "1") == FILE_E_KIND && write_once(".", "1") == FILE_E_KIND);
	CHECK(write_once("up/secret", "1") == -ELOOP && write_once("up/new/file", "1") == -ELOOP);
	CHECK(write_once("plain/file", "1") == -ENOTDIR);
	CHECK(write_once("link", "1") == 0 && open_once("link", 0) == 0);
	CHECK(new_file_begin(&file, root, "taken", 0) == 0);
	CHECK(unlinkat(root, file.temporary, 0) == 0 && symlinkat("../secret", root, file.temporary) == 0);
	CHECK(new_file_append(&file, BYTES("1")) == 0 && new_file_commit(&file, 0644) == FILE_E_TAKEN);
	new_file_deinit(&file);
	CHECK(fstatat(root, "taken", &status, AT_SYMLINK_NOFOLLOW) < 0);
	CHECK(fstatat(outside, "secret", &status, 0) == 0 && status.st_size == (off_t)strlen(SECRET));
}

static size_t list_once(uint64_t *nextp, const char *path, uint64_t after)
{
	_cleanup_(wire_list_deinit) struct wire_list records = {0};

	CHECK(file_list(&records, nextp, root, path, after) == 0);
	CHECK(wire_count(wire_list_bytes(&records)) == records.n);
	return records.n;
}

static void test_listing(void)
{
	uint64_t next = 0;
	size_t n = 0;

	CHECK(file_make_directory(root, "many", 0) == 0 && list_once(&next, "many", 0) == 0 && next == 0);
	for (int i = 0; i < 2 * FILE_LIST_MAX + 1; i++) {
		char name[64];

		snprintf(name, sizeof(name), "many/%d", i);
		make_file(root, name, "");
	}
	do
		n += list_once(&next, "many", next);
	while (next);
	CHECK(n == 2 * FILE_LIST_MAX + 1);
	(void)list_once(&next, "many", UINT64_MAX);
}

/* ---- the race ---- */

/* What is at "x" changes all the time between a file, a link to the secret and a FIFO; "d" between a directory and
 * a link to the one above. */
static _Noreturn void swap(void)
{
	for (;;) {
		make_file(root, "t", "harmless");
		(void)renameat(root, "t", root, "x");
		CHECK(symlinkat("../secret", root, "t") == 0);
		(void)renameat(root, "t", root, "x");
		(void)mkfifoat(root, "t", 0600);
		(void)renameat(root, "t", root, "x");
		(void)renameat(root, "real", root, "d");
		(void)renameat(root, "d", root, "real");
		(void)renameat(root, "way-out", root, "d");
		(void)renameat(root, "d", root, "way-out");
	}
}

static bool reads_secret(const char *path, unsigned *okp)
{
	_cleanup_(fd_closep) int fd = -1;
	char text[16] = "";
	struct stat status;

	if (file_open(&fd, &status, root, path, 0))
		return false;
	++*okp;
	return file_read(fd, text, sizeof(text) - 1, 0) >= 0 && !strcmp(text, SECRET);
}

static void test_race(void)
{
	unsigned leaks = 0, files = 0, directories = 0;
	int rounds = 0;
	pid_t child;

	CHECK(mkdirat(root, "real", 0755) == 0 && symlinkat("..", root, "way-out") == 0);
	make_file(root, "real/secret", "harmless");
	child = fork();
	if (child == 0)
		swap();
	/* On a busy machine the two of them may hardly meet at first. */
	for (; rounds < RACE_ROUNDS || (files == 0 && rounds < 100 * RACE_ROUNDS); rounds++) {
		leaks += reads_secret("x", &files);
		leaks += reads_secret("d/secret", &directories);
	}
	CHECK(child > 0 && kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	CHECK(leaks == 0);
	CHECK(files > 0);
	printf("%u files and %u in directories opened in %d rounds, %u leaks\n", files, directories, rounds, leaks);
}

/* ---- */

static void without_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 437 /* openat2 */, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	CHECK(syscall(437, -1, "", NULL, 0) < 0 && errno == ENOSYS);
}

static void test_all(void)
{
	char command[64];

	memcpy(base, "/tmp/lair-unit-XXXXXX", sizeof(base));
	CHECK(mkdtemp(base) != NULL);
	outside = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(mkdirat(outside, "root", 0700) == 0);
	root = openat(outside, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	make_file(outside, "secret", SECRET);
	test_paths();
	test_refusals();
	test_writing();
	test_listing();
	test_race();
	root = fd_close(root);
	outside = fd_close(outside);
	snprintf(command, sizeof(command), "rm -rf %s", base);
	CHECK(system(command) == 0);
}

int main(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		without_openat2();
		test_all();
		exit(check_report());
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	test_all();
	return check_report();
}
