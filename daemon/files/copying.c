/* Copying in pieces. The kernel moves the bytes, and decides when they go to a disk. */
#include "copying.h"

#include <sys/sendfile.h>

#define PIECE (256U << 10)
#define ROUND_US 1000
#define REST_US 1000

/* Returns 0 or -errno. */
static int copy_piece(struct copying *copying)
{
	ssize_t n = sendfile(copying->to, copying->from, &copying->at, MIN(copying->left, (uint64_t)PIECE));

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	copying->left -= (uint64_t)n;
	return n > 0 ? 0 : -EBADMSG;
}

static void on_turn(struct timer *timer)
{
	struct copying *copying = container_of(timer, struct copying, timer);
	uint64_t until = event_now() + ROUND_US;
	int r = 0;

	while (!r && copying->left > 0 && event_now() < until)
		r = copy_piece(copying);
	if (!r && copying->left > 0)
		r = timer_set(copying->loop, timer, event_now() + REST_US, on_turn);
	if (r || copying->left == 0)
		copying->on_done(copying, r);
}

int copying_begin(struct copying *copying, struct event_loop *loop, int from, off_t at, uint64_t size, int to,
		  void (*on_done)(struct copying *copying, int r))
{
	*copying =
		(struct copying){.loop = loop, .from = from, .to = to, .at = at, .left = size, .on_done = on_done};
	return timer_set(loop, &copying->timer, event_now(), on_turn);
}

void copying_stop(struct copying *copying)
{
	if (copying->loop)
		timer_clear(copying->loop, &copying->timer);
}
