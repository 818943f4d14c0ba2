/* The files of states: what is captured comes back, byte for byte, mode for mode, time for time, links included,
 * after whatever was done in between; files that stay keep their inodes; and what cannot come back is told. */
#include "check.h"
#include "files/capture.h"
#include "files/revert.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

static char root[] = "/tmp/lair-tree-XXXXXX";
static int root_fd;
static struct store store;

/* ---- a tree, as text ---- */

static uint64_t digest(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW);
	uint64_t sum = 14695981039346656037ULL;
	unsigned char data[4096];
	ssize_t n;

	while (fd >= 0 && (n = read(fd, data, sizeof(data))) > 0)
		for (ssize_t i = 0; i < n; i++)
			sum = (sum ^ data[i]) * 1099511628211ULL;
	close(fd);
	return fd < 0 ? 0 : sum;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Links are told by the first of their names. */
static struct {
	ino_t inode;
	char path[PATH_MAX];
} linked[4096];
static size_t n_linked;

static const char *first_name(const struct stat *status, const char *path)
{
	for (size_t i = 0; i < n_linked; i++)
		if (linked[i].inode == status->st_ino)
			return linked[i].path;
	linked[n_linked].inode = status->st_ino;
	snprintf(linked[n_linked++].path, PATH_MAX, "%s", path);
	return path;
}

static void describe_into(FILE *out, int directory, const char *path)
{
	struct dirent **names;
	char below[PATH_MAX], target[PATH_MAX] = "";
	struct stat status;
	int n;

	CHECK(fstatat(directory, "", &status, AT_EMPTY_PATH) == 0);
	fprintf(out, "%s/ %o %lld.%09ld\n", path, status.st_mode, (long long)status.st_mtim.tv_sec,
		status.st_mtim.tv_nsec);
	n = scandirat(directory, ".", &names, NULL, by_name);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, name);
		CHECK(fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0);
		if (S_ISDIR(status.st_mode)) {
			int fd = openat(directory, name, O_RDONLY | O_DIRECTORY);

			CHECK(fd >= 0);
			describe_into(out, fd, below);
			continue;
		}
		memset(target, 0, sizeof(target));
		(void)!readlinkat(directory, name, target, sizeof(target) - 1);
		fprintf(out, "%s %o %lld.%09ld %lld %llx %s %s\n", below, status.st_mode,
			(long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec, (long long)status.st_size,
			S_ISREG(status.st_mode) ? (unsigned long long)digest(directory, name) : 0ULL, target,
			status.st_nlink > 1 ? first_name(&status, below) : "");
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	close(directory);
}

static char *describe(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	n_linked = 0;
	describe_into(out, openat(root_fd, ".", O_RDONLY | O_DIRECTORY), "");
	fclose(out);
	return text;
}

/* ---- states ---- */

static struct manifest *current;

static struct manifest *capture_with(const uint64_t *mapped, size_t n_mapped)
{
	struct capture capture;
	struct manifest *found;
	int r;

	CHECK(capture_begin(&capture, &store, fcntl(root_fd, F_DUPFD_CLOEXEC, 3), current) == 0);
	capture.mapped = mapped;
	capture.n_mapped = n_mapped;
	while ((r = capture_step(&capture)) == 1)
		;
	CHECK(r == 0);
	found = steal_ptr(&capture.found);
	capture_deinit(&capture);
	manifest_drop(&store, current);
	current = manifest_use(found);
	return found;
}

static struct manifest *capture(void)
{
	return capture_with(NULL, 0);
}

static struct manifest *look(void)
{
	struct manifest *found;
	struct scan scan;

	CHECK(scan_begin(&scan, &store, root_fd) == 0);
	while (scan_step(&scan, 1) == 1)
		;
	found = steal_ptr(&scan.found);
	scan_share(&store, found, current);
	scan_deinit(&scan);
	return found;
}

static size_t n_changed, n_made, n_removed, n_failed;
static char why[256];

/* Returns what refused it. */
static int revert_to(struct manifest *target, bool looks)
{
	size_t *counts[] = {&n_changed, &n_made, &n_removed, &n_failed};
	struct manifest *now = looks ? look() : manifest_use(current);
	enum revert_change change;
	struct revert revert;
	int r;

	CHECK(revert_begin(&revert, &store, root_fd, now, target) == 0);
	while (revert_step(&revert))
		;
	n_changed = n_made = n_removed = n_failed = 0;
	for (size_t i = 0; revert_done(&revert, i, &change); i++)
		++*counts[change];
	snprintf(why, sizeof(why), "%s", revert.why);
	r = revert.refused;
	manifest_drop(&store, current);
	current = r ? manifest_use(now) : revert_result(&revert);
	revert_deinit(&revert);
	manifest_drop(&store, now);
	return r;
}

/* ---- what is done in between ---- */

static const char *below(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
	return path;
}

static void write_file(const char *name, int flags, const char *text)
{
	int fd = open(below(name), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | flags, 0644);

	if (fd >= 0)
		CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void test_one_by_one(void)
{
	struct manifest *first, *second;
	char *before, *after;
	struct stat a, b;
	char text[16] = "";
	int fd;

	write_file("plain", 0, "as it was");
	write_file("gone", 0, "deleted later");
	write_file("long", 0, "0123456789");
	CHECK(mkdir(below("d"), 0750) == 0);
	write_file("d/inner", 0, "inside");
	CHECK(link(below("plain"), below("d/same")) == 0 && symlink("plain", below("link")) == 0);
	CHECK(mkfifo(below("fifo"), 0600) == 0);
	first = capture();
	before = describe();
	CHECK(!first->why[0]);
	fd = open(below("long"), O_RDWR);
	CHECK(fstat(fd, &a) == 0);

	write_file("plain", O_TRUNC, "another");
	CHECK(unlink(below("gone")) == 0 && rename(below("long"), below("d/longer")) == 0);
	CHECK(pwrite(fd, "abc", 3, 20) == 3);
	CHECK(unlink(below("d/same")) == 0 && unlink(below("link")) == 0 && mkdir(below("link"), 0700) == 0);
	CHECK(chmod(below("d"), 0700) == 0 && unlink(below("fifo")) == 0);
	write_file("new", 0, "unwanted");
	write_file("link/new", 0, "unwanted");
	second = capture();
	after = describe();
	CHECK(strcmp(before, after) != 0);

	CHECK(revert_to(first, false) == 0);
	free(after);
	after = describe();
	CHECK(strcmp(before, after) == 0);
	CHECK(stat(below("long"), &b) == 0 && a.st_ino == b.st_ino);
	CHECK(pread(fd, text, sizeof(text), 0) == 10 && memcmp(text, "0123456789", 10) == 0);
	CHECK(!why[0] && n_failed == 0 && n_removed > 0 && n_made > 0);

	CHECK(revert_to(first, true) == 0 && n_changed + n_made + n_removed == 0);
	CHECK(revert_to(second, true) == 0 && revert_to(first, true) == 0);
	free(after);
	after = describe();
	CHECK(strcmp(before, after) == 0);
	close(fd);
	free(before);
	free(after);
	manifest_drop(&store, first);
	manifest_drop(&store, second);
}

static void test_mapped(void)
{
	struct manifest *first;
	struct stat status;
	uint64_t inode;
	char *map, *before, *after;
	int fd = open(below("mapped"), O_RDWR | O_CREAT, 0600);

	CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	map[0] = 1;
	CHECK(fstat(fd, &status) == 0);
	inode = status.st_ino;
	first = capture_with(&inode, 1);
	before = describe();
	map[1] = 2; /* the kernel does not tell */
	CHECK(revert_to(first, false) == 0 && map[0] == 1 && map[1] == 0);
	after = describe();
	CHECK(strcmp(before, after) == 0);
	munmap(map, 8192);
	close(fd);
	free(before);
	free(after);
	manifest_drop(&store, first);
}

static void test_nobody_may(void)
{
	struct manifest *first, *second;
	char *before, *after;

	CHECK(mkdir(below("shut"), 0700) == 0);
	write_file("shut/file", 0, "one");
	CHECK(chmod(below("shut/file"), 0400) == 0 && chmod(below("shut"), 0500) == 0);
	first = capture();
	before = describe();
	CHECK(chmod(below("shut"), 0700) == 0 && chmod(below("shut/file"), 0600) == 0);
	write_file("shut/file", O_APPEND, "two");
	write_file("shut/other", 0, "other");
	CHECK(chmod(below("shut/file"), 0400) == 0 && chmod(below("shut"), 0500) == 0);
	second = capture();
	CHECK(revert_to(first, false) == 0 && !why[0]);
	after = describe();
	CHECK(strcmp(before, after) == 0);
	CHECK(chmod(below("shut"), 0700) == 0);
	free(before);
	free(after);
	manifest_drop(&store, first);
	manifest_drop(&store, second);
}

/* Nothing outside is reached by a link that somebody puts into the way. */
static void test_links_in_the_way(void)
{
	char outside[] = "/tmp/lair-outside-XXXXXX", path[PATH_MAX];
	struct manifest *first;
	struct stat status;

	CHECK(mkdtemp(outside));
	snprintf(path, sizeof(path), "%s/file", outside);
	CHECK(mkdir(below("way"), 0700) == 0);
	write_file("way/file", 0, "inside");
	first = capture();
	CHECK(unlink(below("way/file")) == 0 && rmdir(below("way")) == 0 && symlink(outside, below("way")) == 0);
	/* It is not known of: as if it had been done in the midst. */
	(void)revert_to(first, false);
	CHECK(stat(path, &status) < 0);
	CHECK(revert_to(first, true) == 0 && stat(path, &status) < 0);
	CHECK(lstat(below("way"), &status) == 0 && S_ISDIR(status.st_mode));
	CHECK(rmdir(outside) == 0);
	manifest_drop(&store, first);
}

static void test_too_large(void)
{
	struct manifest *first;
	uint64_t max = store.max;
	char *text = malloc(200001);

	memset(text, 'x', 200000);
	text[200000] = '\0';
	write_file("large", 0, text);
	store.max = 100000;
	first = capture();
	store.max = max;
	CHECK(strcmp(first->why, "large: it is too large to be kept") == 0);
	CHECK(revert_to(first, true) == 0 && n_failed == 0);
	write_file("large", O_TRUNC, "other");
	CHECK(revert_to(first, true) == 0 && n_failed == 1 && strcmp(why, "large: its content was not kept") == 0);
	free(text);
	manifest_drop(&store, first);
}

/* Each would fit, and both do not. */
static void test_too_much(void)
{
	struct manifest *first;
	uint64_t max = store.max;
	char *text = malloc(60001);

	memset(text, 'z', 60000);
	text[60000] = '\0';
	write_file("one", 0, text);
	text[0] = 'a';
	write_file("two", 0, text);
	store.max = store.held + 100000;
	first = capture();
	CHECK(store.held <= store.max && first->why[0]);
	store.max = max;
	free(text);
	CHECK(unlink(below("one")) == 0 && unlink(below("two")) == 0);
	manifest_drop(&store, first);
}

/* A file that cannot be written: then nothing has happened. */
static void test_no_room(void)
{
	struct rlimit small, usual;
	struct manifest *first;
	char *text = malloc(300001), *before, *after;

	memset(text, 'y', 300000);
	text[300000] = '\0';
	write_file("room", 0, text);
	write_file("kept", 0, "now");
	first = capture();
	CHECK(unlink(below("room")) == 0);
	write_file("kept", O_TRUNC, "later");
	before = describe();
	CHECK(getrlimit(RLIMIT_FSIZE, &usual) == 0);
	small = usual;
	small.rlim_cur = 100000;
	CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
	CHECK(revert_to(first, true) == -EFBIG);
	CHECK(setrlimit(RLIMIT_FSIZE, &usual) == 0);
	after = describe();
	/* But for the time of the directory in which it was tried. */
	CHECK(strcmp(strchr(before, '\n'), strchr(after, '\n')) == 0);
	CHECK(revert_to(first, true) == 0 && !why[0]);
	free(text);
	free(before);
	free(after);
	manifest_drop(&store, first);
}

/* Somebody exchanges a file that is being made for a FIFO, where an open would wait. */
static void test_exchanged(void)
{
	struct manifest *first, *now;
	struct revert revert;
	struct dirent **names;
	struct stat status;
	int fd = open(below("long"), O_WRONLY | O_CREAT | O_TRUNC, 0600), n, exchanged = 0;

	for (int i = 0; i < 12; i++)
		CHECK(ftruncate(fd, i << 20) == 0 && pwrite(fd, "x", 1, i << 20) == 1);
	for (int i = 0; i < 192; i++)
		CHECK(pwrite(fd, root, sizeof(root), (off_t)i << 16) > 0);
	close(fd);
	write_file("dense", 0, "x");
	CHECK(truncate(below("dense"), 0) == 0);
	fd = open(below("dense"), O_WRONLY);
	for (int i = 0; i < 9 << 8; i++)
		CHECK(write(fd, linked, 4096) == 4096);
	close(fd);
	first = capture();
	CHECK(unlink(below("dense")) == 0 && unlink(below("long")) == 0);
	now = look();
	alarm(20);
	CHECK(revert_begin(&revert, &store, root_fd, now, first) == 0);
	while (revert_step(&revert)) {
		n = scandirat(root_fd, ".", &names, NULL, by_name);
		for (int i = 0; i < n; i++) {
			if (strncmp(names[i]->d_name, ".lair-back-", 11) == 0 && exchanged++ < 1) {
				CHECK(unlink(below(names[i]->d_name)) == 0);
				CHECK(mkfifo(below(names[i]->d_name), 0600) == 0);
			}
			free(names[i]);
		}
		free(names);
	}
	alarm(0);
	CHECK(exchanged > 0 && !revert.refused && revert.why[0]);
	manifest_drop(&store, current);
	current = NULL;
	revert_deinit(&revert);
	manifest_drop(&store, now);
	CHECK(revert_to(first, true) == 0 && !why[0]);
	CHECK(stat(below("dense"), &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 9 << 20);
	CHECK(unlink(below("dense")) == 0 && unlink(below("long")) == 0);
	manifest_drop(&store, first);
}

/* Bytes of files without a name that are open here. */
static uint64_t bytes_unnamed(void)
{
	uint64_t sum = 0;
	struct stat status;

	for (int fd = 3; fd < 200; fd++)
		if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0)
			sum += (uint64_t)status.st_blocks * 512;
	return sum;
}

/* But for a few blocks in which the file system notes where a file lies. */
static bool is_counted(void)
{
	uint64_t given = bytes_unnamed();

	return store.held <= given && given <= store.held + (32U << 10);
}

/* The store holds what the disk has given, also when some of it is dropped. */
static void test_counted(void)
{
	struct manifest *states[6];
	char name[32], text[32];

	CHECK(mkdir(below("many"), 0700) == 0);
	for (int n = 0; n < 6; n++) {
		for (int i = 0; i < 200; i++) {
			snprintf(name, sizeof(name), "many/%d", i);
			snprintf(text, sizeof(text), "%d", n);
			if (i % (n + 1) == 0)
				write_file(name, O_TRUNC, text);
		}
		states[n] = capture();
		CHECK(is_counted());
	}
	for (int n = 0; n < 6; n++) {
		manifest_drop(&store, states[(n + 2) % 6]);
		store_settle(&store);
		CHECK(is_counted());
	}
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		CHECK(unlink(below(name)) == 0);
	}
	CHECK(rmdir(below("many")) == 0);
}

/* ---- at random ---- */

static unsigned state = 1;

static unsigned any(unsigned below_that)
{
	state = state * 1664525U + 1013904223U;
	return (state >> 8) % below_that;
}

static const char *any_path(void)
{
	static const char *const names[] = {"a",   "b",	    "c",     "d", "d/e", "d/f",
					    "d/g", "d/e/h", "d/e/i", "k", "k/a", "k/b"};

	return names[any(ARRAY_SIZE(names))];
}

static void do_anything(void)
{
	char path[PATH_MAX], other[PATH_MAX], text[32];
	struct stat status;
	struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000 + any(5), .tv_nsec = any(1000)}};
	int fd;

	snprintf(path, sizeof(path), "%s", below(any_path()));
	snprintf(other, sizeof(other), "%s", below(any_path()));
	snprintf(text, sizeof(text), "%u", any(100000));
	switch (any(13)) {
	case 0:
	case 1:
		write_file(path + strlen(root) + 1, O_TRUNC, text);
		break;
	case 2:
		write_file(path + strlen(root) + 1, O_APPEND, text);
		break;
	case 3:
		write_file(path + strlen(root) + 1, 0, text);
		break;
	case 4:
		(void)!mkdir(path, 0700);
		break;
	case 5:
		(void)!unlink(path);
		break;
	case 6:
		(void)!rename(path, other);
		break;
	case 7:
		if (lstat(path, &status) == 0 && S_ISREG(status.st_mode))
			(void)!link(path, other);
		break;
	case 8:
		(void)!symlink(text, path);
		break;
	case 9:
		(void)!fchmodat(AT_FDCWD, path, any(2) ? 0700 : 0755, 0);
		break;
	case 10:
		(void)!utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
		break;
	case 11:
		(void)!rmdir(path);
		break;
	case 12:
		fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0)
			(void)!ftruncate(fd, any(3) ? any(10) : 70000 + any(5000));
		close(fd);
		break;
	}
}

#define KEPT 6

static void random_round(unsigned seed)
{
	struct {
		struct manifest *manifest;
		char *text;
	} kept[KEPT] = {0};

	state = seed;
	for (int step = 0; step < 60; step++) {
		unsigned which = any(KEPT);
		bool captured = any(3) > 0;
		char *now;

		for (unsigned n = any(6); n > 0; n--)
			do_anything();
		if (captured || !kept[which].manifest) {
			manifest_drop(&store, kept[which].manifest);
			free(kept[which].text);
			kept[which].manifest = capture();
			kept[which].text = describe();
			CHECK(!kept[which].manifest->why[0]);
		}
		which = any(KEPT);
		if (!kept[which].manifest)
			continue;
		CHECK(revert_to(kept[which].manifest, !captured || any(2)) == 0);
		now = describe();
		if (strcmp(now, kept[which].text) != 0 || why[0]) {
			fprintf(stderr, "seed %u step %d: %s\n--- is\n%s--- was\n%s", seed, step, why, now,
				kept[which].text);
			CHECK(!"all is as it was");
			exit(1);
		}
		free(now);
	}
	for (size_t i = 0; i < KEPT; i++) {
		manifest_drop(&store, kept[i].manifest);
		free(kept[i].text);
	}
}

int main(int argc, char **argv)
{
	char command[64];

	/* Whom modes concern. */
	CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
	CHECK(mkdtemp(root));
	root_fd = open(root, O_RDONLY | O_DIRECTORY);
	store_init(&store, root_fd, 64 << 20);
	umask(022);
	signal(SIGXFSZ, SIG_IGN);
	test_one_by_one();
	test_mapped();
	test_nobody_may();
	test_links_in_the_way();
	test_too_much();
	test_no_room();
	test_exchanged();
	test_counted();
	for (unsigned seed = 1; seed <= (unsigned)(argc > 1 ? atoi(argv[1]) : 30); seed++)
		random_round(seed);
	test_too_large();
	current = manifest_drop(&store, current);
	CHECK(store.held == 0 && !store.packs);
	store_deinit(&store);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	CHECK(system(command) == 0);
	return check_report();
}
