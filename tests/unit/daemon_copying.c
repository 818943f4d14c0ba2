/* A copy takes many rounds, and others have theirs in between. */
#include "files/copying.h"

#include "check.h"

#include <sys/mman.h>

#define SIZE (96U << 20)

static int result = 1;

static void on_done(struct copying *copying, int r)
{
	(void)copying;
	result = r;
}

static int file(size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	return fd;
}

static unsigned run(struct event_loop *loop)
{
	unsigned rounds = 0;

	for (result = 1; result > 0; rounds++)
		timer_run(loop, &(struct slice){.until = UINT64_MAX, .things = SIZE_MAX});
	return rounds;
}

int main(void)
{
	static char text[8];
	struct copying copying = {.loop = NULL};
	struct event_loop loop;
	int from = file(SIZE), to = file(0);
	uint64_t begin, most = 0;

	copying_stop(&copying);
	CHECK(event_loop_init(&loop) == 0);
	CHECK(pwrite(from, "the last", 8, SIZE - 8) == 8);
	CHECK(copying_begin(&copying, &loop, from, 4096, SIZE - 4096, to, on_done) == 0 && result == 1);
	while (result > 0) {
		begin = event_now();
		timer_run(&loop, &(struct slice){.until = UINT64_MAX, .things = SIZE_MAX});
		most = MAX(most, event_now() - begin);
	}
	CHECK(result == 0 && lseek(to, 0, SEEK_END) == SIZE - 4096);
	CHECK(pread(to, text, 8, SIZE - 4096 - 8) == 8 && memcmp(text, "the last", 8) == 0);
	printf("the longest round took %llu us\n", (unsigned long long)most);

	/* It is shorter than was said. */
	CHECK(copying_begin(&copying, &loop, from, 0, 2 * (uint64_t)SIZE, to, on_done) == 0);
	CHECK(run(&loop) > 3 && result == -EBADMSG);
	CHECK(copying_begin(&copying, &loop, from, 0, SIZE, -1, on_done) == 0);
	CHECK(run(&loop) == 1 && result == -EBADF);
	/* Nobody is told. */
	CHECK(copying_begin(&copying, &loop, from, 0, SIZE, to, on_done) == 0);
	result = 1;
	timer_run(&loop, &(struct slice){.until = UINT64_MAX, .things = SIZE_MAX});
	copying_stop(&copying);
	CHECK(result == 1 && loop.n_timers == 0);
	event_loop_deinit(&loop);
	return check_report();
}
