/* Descriptors and deadlines. */
#include "check.h"

#include "event.h"

#include <fcntl.h>

static unsigned calls;
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
	timer_run(&loop);
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
	timer_run(&loop);
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
	event_dispatch(&loop, 0);
	CHECK(calls == 0);
	CHECK(write(pa[1], "x", 1) == 1 && write(pb[1], "x", 1) == 1);
	victim = &b;
	victim_loop = &loop;
	event_dispatch(&loop, 0);
	CHECK(calls == 1 && b.fd == -1);
	event_change(&loop, &a, 0);
	calls = 0;
	event_dispatch(&loop, 0);
	CHECK(calls == 0);
	event_remove(&loop, &a);
	event_remove(&loop, &a);
	for (int i = 0; i < 2; i++) {
		fd_close(pa[i]);
		fd_close(pb[i]);
	}
	event_loop_deinit(&loop);
}

int main(void)
{
	test_timers_in_order();
	test_sleep();
	test_wait();
	test_removed_meanwhile();
	return check_report();
}
