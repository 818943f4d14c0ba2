/* Descriptors and deadlines. */
#include "check.h"

#include "proto/event.h"

#include <fcntl.h>

static unsigned calls;
static struct slice all = {.until = UINT64_MAX, .things = SIZE_MAX};
static uint64_t last_deadline;

static void on_timer(struct timer *timer)
{
	CHECK(timer->deadline >= last_deadline);
	last_deadline = timer->deadline;
	calls++;
}

static void test_timers_in_order(void)
{
	static struct timer timers[1000];
	struct event_loop loop;
	size_t cleared = 0;

	CHECK(event_loop_init(&loop) == 0 && timer_wait(&loop) == -1);
	srand(1);
	for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
		CHECK(timer_set(&loop, &timers[i], (uint64_t)(rand() % 5000), on_timer) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(timers); i += 3)
		CHECK(timer_set(&loop, &timers[i], (uint64_t)(rand() % 5000), on_timer) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(timers); i += 7, cleared++)
		timer_clear(&loop, &timers[i]);
	timer_clear(&loop, &timers[0]);
	CHECK(timer_wait(&loop) == 0);
	timer_run(&loop, &all);
	CHECK(calls == ARRAY_SIZE(timers) - cleared && loop.n_timers == 0);
	event_loop_deinit(&loop);
}

static void test_wait(void)
{
	struct event_loop loop;
	struct timer timer = {0};
	int wait;

	CHECK(event_loop_init(&loop) == 0);
	CHECK(timer_set(&loop, &timer, event_now() + 50000, on_timer) == 0);
	wait = timer_wait(&loop);
	CHECK(wait > 40 && wait <= 50);
	calls = 0;
	timer_run(&loop, &all);
	CHECK(calls == 0 && timer.index == 1);
	event_loop_deinit(&loop);
}

/* An hour's sleep: what was to happen in ten minutes has happened, or has ten minutes still. */
static void test_sleep(void)
{
	const uint64_t hour = 3600 * 1000000ULL;
	static struct timer timers[100];
	struct event_loop loop;
	uint64_t due;

	CHECK(event_loop_init(&loop) == 0);
	due = event_now() + hour / 6;
	for (size_t i = 0; i < ARRAY_SIZE(timers); i++) {
		timers[i].calendar = i % 2;
		CHECK(timer_set(&loop, &timers[i], due + (uint64_t)(rand() % 5000), on_timer) == 0);
	}
	timer_slept(&loop, loop.slept + 1000);
	timer_slept(&loop, loop.slept + hour);
	timer_slept(&loop, loop.slept);
	for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
		CHECK((timers[i].deadline > due + hour - 1) == !timers[i].calendar);
	last_deadline = 0;
	while (loop.n_timers > 0) {
		on_timer(loop.heap[1]);
		timer_clear(&loop, loop.heap[1]);
	}
	event_loop_deinit(&loop);
}

static void go(struct event_loop *loop, struct slice *slice)
{
	CHECK(event_wait(loop, 0) == 0);
	event_dispatch(loop, slice);
}

static struct event_source *victim;
static struct event_loop *victim_loop;

static void on_readable(struct event_source *source, uint32_t events)
{
	CHECK(events & EPOLLIN);
	calls++;
	/* Whichever comes first takes the other one out; that must not be called any more. */
	if (source != victim)
		event_remove(victim_loop, victim);
	else
		event_remove(victim_loop, source);
}

static void test_removed_meanwhile(void)
{
	struct event_source a = EVENT_SOURCE_NONE, b = EVENT_SOURCE_NONE;
	struct event_loop loop;
	int pa[2] = {-1, -1}, pb[2] = {-1, -1};

	CHECK(event_loop_init(&loop) == 0 && pipe(pa) == 0 && pipe(pb) == 0);
	CHECK(event_add(&loop, &a, pa[0], EPOLLIN, on_readable) == 0);
	CHECK(event_add(&loop, &b, pb[0], EPOLLIN, on_readable) == 0);
	calls = 0;
	go(&loop, &all);
	CHECK(calls == 0);
	CHECK(write(pa[1], "x", 1) == 1 && write(pb[1], "x", 1) == 1);
	victim = &b;
	victim_loop = &loop;
	go(&loop, &all);
	CHECK(calls == 1 && b.fd == -1);
	event_change(&loop, &a, 0);
	calls = 0;
	go(&loop, &all);
	CHECK(calls == 0);
	event_remove(&loop, &a);
	event_remove(&loop, &a);
	for (int i = 0; i < 2; i++) {
		fd_close(pa[i]);
		fd_close(pb[i]);
	}
	event_loop_deinit(&loop);
}

/* ---- turns ---- */

#define N_BUSY 100

static struct event_source busy[N_BUSY];
static unsigned turns[N_BUSY], begun;

static void on_busy(struct event_source *source, uint32_t events)
{
	(void)events;
	turns[source - busy]++;
}

static void on_turn(struct event_loop *loop)
{
	(void)loop;
	begun++;
}

/* However little is done in one go, and whoever is always ready: each has its turn. */
static void test_turns(void)
{
	struct slice one = {.until = UINT64_MAX, .things = 1}, past = {.until = 0, .things = SIZE_MAX};
	struct event_loop loop;
	int ends[2] = {-1, -1}, fds[N_BUSY];

	CHECK(event_loop_init(&loop) == 0 && pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
	loop.on_turn = on_turn;
	for (int i = 0; i < N_BUSY; i++) {
		fds[i] = dup(ends[0]);
		CHECK(event_add(&loop, &busy[i], fds[i], EPOLLIN, on_busy) == 0);
	}
	for (int i = 0; i < 5 * N_BUSY; i++) {
		struct slice slice = i % 2 ? one : past;

		go(&loop, &slice);
		CHECK(slice.things == 0);
	}
	CHECK(begun == 5 * N_BUSY);
	for (int i = 0; i < N_BUSY; i++)
		CHECK(turns[i] >= 4 && turns[i] <= 6);
	/* Who is taken out, or changes its mind, while it waits for a turn has none. */
	while (!event_pending(&loop))
		go(&loop, &(struct slice){.things = 0});
	for (int i = 0; i < N_BUSY; i++) {
		if (i % 2)
			event_remove(&loop, &busy[i]);
		else
			event_change(&loop, &busy[i], 0);
		turns[i] = 0;
	}
	event_dispatch(&loop, &all);
	CHECK(!event_pending(&loop));
	for (int i = 0; i < N_BUSY; i++) {
		CHECK(turns[i] == 0);
		fd_close(fds[i]);
	}
	fd_close(ends[0]);
	fd_close(ends[1]);
	event_loop_deinit(&loop);
}

static void on_slow(struct event_source *source, uint32_t events)
{
	uint64_t until = event_now() + 100;

	while (event_now() < until)
		;
	on_busy(source, events);
}

/* A hundred turns. Whether what one has taken and what the other has are never further apart than the longest turn.
 */
static bool turns_are_fair(struct event_loop *loop, const struct party *a, const struct party *b)
{
	static uint64_t longest;
	uint64_t before, apart;

	for (int i = 0; i < 100; i++) {
		before = a->spent + b->spent;
		go(loop, &(struct slice){.until = UINT64_MAX, .things = 1});
		longest = MAX(longest, a->spent + b->spent - before);
		apart = MAX(a->spent, b->spent) - MIN(a->spent, b->spent);
		if (apart > longest)
			return false;
	}
	return true;
}

/* One with many sources takes no more of the time than one with a single source. */
static void test_parties(void)
{
	struct party many, one;
	struct event_loop loop;
	int ends[2] = {-1, -1}, fds[N_BUSY];

	CHECK(event_loop_init(&loop) == 0 && pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
	party_init(&many);
	party_init(&one);
	for (int i = 0; i < N_BUSY; i++) {
		fds[i] = dup(ends[0]);
		turns[i] = 0;
		CHECK(event_add(&loop, &busy[i], fds[i], EPOLLIN, on_slow) == 0);
		event_give(&busy[i], i < N_BUSY - 1 ? &many : &one);
	}
	CHECK(turns_are_fair(&loop, &many, &one) && turns[N_BUSY - 1] > 1);
	/* Time in which it wanted nothing is not saved up. */
	event_change(&loop, &busy[N_BUSY - 1], 0);
	(void)turns_are_fair(&loop, &many, &one);
	event_change(&loop, &busy[N_BUSY - 1], EPOLLIN);
	go(&loop, &(struct slice){.until = UINT64_MAX, .things = 1});
	CHECK(turns_are_fair(&loop, &many, &one));
	for (int i = 0; i < N_BUSY; i++) {
		event_remove(&loop, &busy[i]);
		fd_close(fds[i]);
	}
	CHECK(!event_pending(&loop) && list_empty(&many.node) && list_empty(&one.node));
	fd_close(ends[0]);
	fd_close(ends[1]);
	event_loop_deinit(&loop);
}

/* What came of a party with short turns is not kept back by those of another with long ones. */
static void test_light_turns_end_a_round(void)
{
	struct slice wide = {.until = UINT64_MAX, .things = 1000};
	struct event_loop loop;
	struct party heavy, light;
	int ends[2] = {-1, -1}, fds[N_BUSY];

	CHECK(event_loop_init(&loop) == 0 && pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
	party_init(&heavy);
	party_init(&light);
	for (int i = 0; i < N_BUSY; i++) {
		fds[i] = dup(ends[0]);
		CHECK(event_add(&loop, &busy[i], fds[i], i ? EPOLLIN : 0, i ? on_slow : on_busy) == 0);
		event_give(&busy[i], i ? &heavy : &light);
	}
	for (int i = 0; i < 3; i++)
		go(&loop, &(struct slice){.until = UINT64_MAX, .things = 1000});
	event_change(&loop, &busy[0], EPOLLIN);
	memset(turns, 0, sizeof(turns));
	go(&loop, &wide);
	CHECK(turns[0] == 1);
	for (int i = 1; i < N_BUSY; i++)
		CHECK(turns[i] == 0);
	/* They have the next one. */
	event_change(&loop, &busy[0], 0);
	go(&loop, &wide);
	for (int i = 1; i < N_BUSY; i++)
		CHECK(turns[i] == 1);
	for (int i = 0; i < N_BUSY; i++) {
		event_remove(&loop, &busy[i]);
		fd_close(fds[i]);
	}
	fd_close(ends[0]);
	fd_close(ends[1]);
	event_loop_deinit(&loop);
}

/* Where what is done makes more to be done afterwards, a few things are begun in any case and then no more. */
static void test_owed(void)
{
	uint64_t owed = 100;
	struct slice slice = {.until = UINT64_MAX, .things = 10, .owed = &owed, .owed_max = 100, .few = 3};
	unsigned n = 0;

	while (slice_take(&slice))
		n++;
	CHECK(n == 10);
	owed = 101;
	slice.things = 10;
	slice.few = 3;
	for (n = 0; slice_take(&slice); n++)
		;
	CHECK(n == 3);
	owed = 0;
	slice.things = 10;
	slice.few = 1;
	for (n = 0; slice_take(&slice); n++)
		owed += 30;
	CHECK(n == 5);
}

static void test_timers_have_turns(void)
{
	static struct timer timers[10];
	struct event_loop loop;

	CHECK(event_loop_init(&loop) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
		CHECK(timer_set(&loop, &timers[i], 1 + i, on_timer) == 0);
	last_deadline = calls = 0;
	for (unsigned i = 1; i <= ARRAY_SIZE(timers); i++) {
		timer_run(&loop, &(struct slice){.until = 0, .things = SIZE_MAX});
		timer_run(&loop, &(struct slice){.until = UINT64_MAX, .things = 0});
		CHECK(calls == i);
	}
	event_loop_deinit(&loop);
}

static unsigned heard;
static struct event_loop round_loop;

static void on_heard(struct event_source *source, uint32_t events)
{
	heard++;
}

static void on_heard_once(struct event_source *source, uint32_t events)
{
	heard++;
	event_remove(&round_loop, source);
}

/* A file is ready in each round; a pipe whose other end is closed is not, once nobody wants it. */
static void test_rounds(void)
{
	struct event_source file = EVENT_SOURCE_NONE, end = EVENT_SOURCE_NONE;
	struct timer timer = {.index = 0};
	int null = open("/dev/null", O_RDONLY), pipes[2];

	heard = calls = 0;
	last_deadline = 0;
	if (event_loop_init(&round_loop) || pipe(pipes) < 0)
		abort();
	CHECK(event_set(&round_loop, &file, null, EPOLLIN, on_heard) == 0);
	CHECK(event_round(&round_loop, -1) == 0 && event_round(&round_loop, -1) == 0 && heard == 2);
	CHECK(event_set(&round_loop, &file, null, 0, on_heard) == 0 && file.fd == -1);
	CHECK(event_set(&round_loop, &end, pipes[1], EPOLLOUT, on_heard) == 0);
	(void)close(pipes[0]);
	CHECK(event_round(&round_loop, -1) == 0 && heard == 3);
	CHECK(event_set(&round_loop, &end, pipes[1], 0, on_heard) == 0);
	CHECK(event_round(&round_loop, 0) == 0 && heard == 3);
	CHECK(event_set(&round_loop, &end, pipes[1], EPOLLOUT, on_heard_once) == 0);
	CHECK(event_round(&round_loop, -1) == 0 && event_round(&round_loop, 0) == 0 && heard == 4);
	CHECK(timer_set_in(&round_loop, &timer, 0.001, on_timer) == 0);
	while (calls == 0)
		CHECK(event_round(&round_loop, -1) == 0);
	CHECK(timer.index == 0);
	event_loop_deinit(&round_loop);
	(void)close(pipes[1]);
	(void)close(null);
}

int main(void)
{
	test_timers_in_order();
	test_sleep();
	test_wait();
	test_turns();
	test_parties();
	test_light_turns_end_a_round();
	test_owed();
	test_timers_have_turns();
	test_removed_meanwhile();
	test_rounds();
	return check_report();
}
