/* How long the next cell has to wait, so that the files of the one before are not its own; and what is told of them
 * without memory. */
#include "check.h"
#include "observe/artifacts.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS 1000000

static unsigned left = UINT32_MAX; /* how often there is memory */

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	if (left == 0)
		return NULL;
	left--;
	return __real_realloc(memory, size);
}

/* The wall clock alone is ahead by so much; file times are the kernel's. */
static time_t ahead;

int clock_gettime(clockid_t __clock_id, struct timespec *__tp)
{
	int r = (int)syscall(SYS_clock_gettime, __clock_id, __tp);

	if (__clock_id == CLOCK_REALTIME || __clock_id == CLOCK_REALTIME_COARSE)
		__tp->tv_sec += ahead;
	return r;
}

static size_t found(bool *more)
{
	struct artifacts_found all = artifacts_end(true);

	*more = all.more;
	return wire_count(all.files);
}

/* Fewer than there are, and it is said; never an array that is cut off. */
static void test_little_memory(void)
{
	char home[] = "/tmp/lair-unit-XXXXXX", path[128];
	bool more;
	int fd;

	CHECK(mkdtemp(home) != NULL);
	artifacts_home(home);
	artifacts_begin();
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%d", home, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		CHECK(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
	}
	left = 0;
	CHECK(found(&more) == 0 && more);
	left = UINT32_MAX;
	CHECK(found(&more) == 3 && !more);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%d", home, i);
		CHECK(unlink(path) == 0);
	}
	CHECK(rmdir(home) == 0);
	artifacts_begin();
	CHECK(found(&more) == 0 && !more);
}

static void file_make(const char *home, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", home, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
}

/* A file that is written after the clock was set back seems older than the cell. */
static void test_clock_set_back(void)
{
	char home[] = "/tmp/lair-unit-XXXXXX", command[64];
	struct artifacts_found all;

	CHECK(mkdtemp(home) != NULL);
	artifacts_home(home);
	ahead = 3600;
	artifacts_begin();
	ahead = 0;
	file_make(home, "hidden");
	all = artifacts_end(true);
	CHECK(all.changed && all.more);
	artifacts_begin();
	all = artifacts_end(true);
	CHECK(!all.changed && !all.more);
	snprintf(command, sizeof(command), "rm -rf %s", home);
	CHECK(system(command) == 0);
}

static bool too_soon(long newest_s, long newest_ms, long now_s, long now_ms)
{
	return artifacts_too_soon((struct timespec){.tv_sec = newest_s, .tv_nsec = newest_ms * MS},
				  (struct timespec){.tv_sec = now_s, .tv_nsec = now_ms * MS});
}

int main(void)
{
	test_little_memory();
	test_clock_set_back();
	CHECK(!too_soon(0, 0, 100, 0));
	CHECK(!too_soon(100, 1, 100, 4));
	CHECK(too_soon(100, 4, 100, 4));
	CHECK(too_soon(100, 6, 100, 4));
	/* A second has begun, and file times are still in the one before. */
	CHECK(too_soon(101, 1, 100, 998));
	CHECK(!too_soon(100, 998, 101, 1));
	/* The clock was set back. */
	CHECK(too_soon(100, 900, 100, 0));
	CHECK(too_soon(101, 3, 100, 4));
	CHECK(!too_soon(101, 4, 100, 4));
	CHECK(!too_soon(103, 0, 100, 4));
	return check_report();
}
