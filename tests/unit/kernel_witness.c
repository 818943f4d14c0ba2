/* The witness: what happens in a tree raises the count, and looks at the tree do not. The parent is the warden, its
 * child the interpreter that asks. */
#include "check.h"
#include "files/witness.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLOOR 200
#define MANY_FILES 40000

static void put(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

/* The count, when all is watched. */
static uint32_t settled(void)
{
	uint32_t count = 0;

	for (int i = 0; i < 1000 && count == 0; i++) {
		count = witness_ask();
		if (count == 0)
			poll(NULL, 0, 1);
	}
	CHECK(count != 0);
	return count;
}

/* The count, which must have changed, or must not have. */
static uint32_t asked(uint32_t before, bool news)
{
	uint32_t now = witness_ask();

	CHECK(now != 0);
	CHECK((now != before) == news);
	return now;
}

static void test_what_is_seen(uint32_t count)
{
	int fd;

	put("a", "2", 0);
	count = asked(count, true);
	put("deep/er/b", "2", O_APPEND);
	count = asked(count, true);
	CHECK(truncate("a", 0) == 0);
	count = asked(count, true);
	put("new", "", 0);
	count = asked(count, true);
	CHECK(rename("new", "deep/newer") == 0);
	count = asked(count, true);
	CHECK(link("a", "deep/a") == 0);
	count = asked(count, true);
	CHECK(unlink("deep/a") == 0 && unlink("deep/newer") == 0);
	count = asked(count, true);
	CHECK(chmod("a", 0640) == 0);
	count = asked(count, true);
	fd = open("a", O_RDWR | O_CLOEXEC); /* whoever opens may map */
	CHECK(fd >= 0);
	count = asked(count, true);
	CHECK(close(fd) == 0);
	asked(count, true);
}

static void test_what_is_no_news(void)
{
	uint32_t count = settled();
	struct stat status;
	DIR *stream;

	count = asked(count, false);
	stream = opendir("deep");
	CHECK(stream && readdir(stream) && closedir(stream) == 0);
	CHECK(stat("deep/er/b", &status) == 0);
	asked(count, false);
	put(".branches/theirs", "2", 0); /* they have their own */
	asked(count, false);
}

/* In a new directory nobody sees anything at first, so nobody claims to. */
static void test_new_directories(void)
{
	uint32_t count;

	settled();
	CHECK(mkdir("fresh", 0700) == 0);
	CHECK(witness_ask() == 0);
	count = settled();
	put("fresh/c", "1", 0);
	asked(count, true);
	CHECK(rename("fresh", "moved") == 0);
	CHECK(witness_ask() == 0);
	count = settled();
	put("moved/c", "2", 0);
	count = asked(count, true);
	CHECK(unlink("moved/c") == 0 && rmdir("moved") == 0);
	count = asked(count, true);
	asked(count, false);
}

/* More than the kernel keeps for us. */
static void test_too_much(void)
{
	char path[16];

	settled();
	for (int i = 0; i < MANY_FILES; i++) {
		snprintf(path, sizeof(path), "%d", i);
		CHECK(mknod(path, S_IFREG | 0600, 0) == 0 && unlink(path) == 0);
	}
	CHECK(witness_ask() == 0);
	settled();
}

static void test_no_bell(void)
{
	char text[16] = "";
	int fd;

	settled();
	for (int i = 3; i < FLOOR + 10; i++)
		close(i);
	CHECK(witness_ask() == 0);
	fd = open("a", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && dup2(fd, FLOOR) == FLOOR);
	CHECK(witness_ask() == 0);
	CHECK(pread(fd, text, sizeof(text), 0) == 0); /* the bell is not rung in somebody's file */
}

static void interpreter(void)
{
	uint32_t count;

	witness_move(FLOOR);
	CHECK(witness_ask() == 0); /* nothing is watched before somebody asks */
	count = settled();
	asked(count, false);
	test_what_is_seen(count);
	test_what_is_no_news();
	test_new_directories();
	test_too_much();
	test_no_bell();
}

static void serve(pid_t child)
{
	struct pollfd bell = {.fd = witness_bell(), .events = POLLIN};
	int status;

	while (waitpid(child, &status, WNOHANG) == 0) {
		if (poll(&bell, 1, witness_busy() ? 0 : 20) > 0)
			witness_answer(false);
		if (witness_busy())
			witness_step();
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	char home[] = "/tmp/lair-unit-XXXXXX";
	char remove[64];
	pid_t child;

	CHECK(mkdtemp(home) && chdir(home) == 0);
	CHECK(mkdir("deep", 0700) == 0 && mkdir("deep/er", 0700) == 0 && mkdir(".branches", 0700) == 0);
	put("a", "1", 0);
	put("deep/er/b", "1", 0);
	witness_init();
	child = fork();
	if (child == 0) {
		interpreter();
		_exit(check_report());
	}
	serve(child);
	snprintf(remove, sizeof(remove), "rm -r %s", home);
	CHECK(system(remove) == 0);
	return check_report();
}
