/* Descriptors and deadlines. The heap holds pointers to timers that live in their owners; each timer knows its
 * place, so that clearing one is as cheap as setting it. */
#include "event.h"

#include "proto/clock.h"

#include <limits.h>

#define SLEEP_MIN_US 500000

uint64_t event_now(void)
{
	return clock_ns(CLOCK_BOOTTIME) / 1000;
}

/* Since it was started. */
static uint64_t machine_slept(void)
{
	uint64_t awake = clock_ns(CLOCK_MONOTONIC) / 1000, all = event_now();

	return MAX(all, awake) - awake;
}

int event_loop_init(struct event_loop *loop)
{
	*loop = (struct event_loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .slept = machine_slept()};
	return loop->epoll_fd < 0 ? -errno : 0;
}

void event_loop_deinit(struct event_loop *loop)
{
	fd_closep(&loop->epoll_fd);
	free(loop->heap);
	loop->heap = NULL;
}

int event_add(struct event_loop *loop, struct event_source *source, int fd, uint32_t events,
	      void (*fn)(struct event_source *source, uint32_t events))
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	*source = (struct event_source){.fd = fd, .events = events, .fn = fn};
	return 0;
}

void event_change(struct event_loop *loop, struct event_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	if (source->fd < 0 || source->events == events)
		return;
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event);
	source->events = events;
}

void event_remove(struct event_loop *loop, struct event_source *source)
{
	if (source->fd >= 0)
		(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->fd = -1;
	for (int i = loop->next; i < loop->n_batch; i++)
		if (loop->batch[i].data.ptr == source)
			loop->batch[i].data.ptr = NULL;
}

/* ---- turns ---- */

bool slice_take(struct slice *slice)
{
	if (slice->things == 0)
		return false;
	/* The clock is not looked at for the first. */
	slice->things = event_now() < slice->until ? slice->things - 1 : 0;
	return true;
}

static void turn_begin(struct event_loop *loop)
{
	if (loop->on_turn)
		loop->on_turn(loop);
}

bool event_pending(const struct event_loop *loop)
{
	return loop->next < loop->n_batch;
}

static int batch_wait(struct event_loop *loop, int ms)
{
	loop->next = loop->n_batch = 0;
	loop->n_batch = epoll_wait(loop->epoll_fd, loop->batch, EVENT_BATCH, ms);
	return loop->n_batch < 0 && errno != EINTR ? -errno : 0;
}

int event_wait(struct event_loop *loop, int ms)
{
	return event_pending(loop) ? 0 : batch_wait(loop, ms);
}

int event_dispatch(struct event_loop *loop, int ms, struct slice *slice)
{
	int r = event_wait(loop, ms);

	if (r)
		return r;
	while (event_pending(loop)) {
		const struct epoll_event *event = &loop->batch[loop->next];
		struct event_source *source = event->data.ptr;
		/* It may have changed its mind since it was seen to be ready. */
		uint32_t events = source ? event->events & (source->events | EPOLLHUP | EPOLLERR) : 0;

		if (events && !slice_take(slice))
			break;
		loop->next++;
		if (!events)
			continue;
		turn_begin(loop);
		source->fn(source, events);
	}
	return 0;
}

static void heap_put(struct event_loop *loop, size_t index, struct timer *timer)
{
	loop->heap[index] = timer;
	timer->index = index;
}

static void heap_up(struct event_loop *loop, size_t index)
{
	struct timer *timer = loop->heap[index];

	for (; index > 1 && loop->heap[index / 2]->deadline > timer->deadline; index /= 2)
		heap_put(loop, index, loop->heap[index / 2]);
	heap_put(loop, index, timer);
}

static void heap_down(struct event_loop *loop, size_t index)
{
	struct timer *timer = loop->heap[index];

	for (;;) {
		size_t child = 2 * index;

		if (child > loop->n_timers)
			break;
		if (child < loop->n_timers && loop->heap[child + 1]->deadline < loop->heap[child]->deadline)
			child++;
		if (loop->heap[child]->deadline >= timer->deadline)
			break;
		heap_put(loop, index, loop->heap[child]);
		index = child;
	}
	heap_put(loop, index, timer);
}

static int heap_reserve(struct event_loop *loop)
{
	size_t allocated = loop->allocated ? 2 * loop->allocated : 64;
	struct timer **grown;

	if (loop->n_timers + 1 < loop->allocated)
		return 0;
	grown = realloc(loop->heap, allocated * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	loop->heap = grown;
	loop->allocated = allocated;
	return 0;
}

int timer_set(struct event_loop *loop, struct timer *timer, uint64_t deadline, void (*fn)(struct timer *timer))
{
	int r;

	timer->fn = fn;
	if (!timer->index) {
		r = heap_reserve(loop);
		if (r)
			return r;
		timer->deadline = deadline;
		heap_put(loop, ++loop->n_timers, timer);
		heap_up(loop, timer->index);
		return 0;
	}
	timer->deadline = deadline;
	heap_up(loop, timer->index);
	heap_down(loop, timer->index);
	return 0;
}

void timer_clear(struct event_loop *loop, struct timer *timer)
{
	size_t index = timer->index;
	struct timer *last;

	if (!index)
		return;
	timer->index = 0;
	last = loop->heap[loop->n_timers--];
	if (last == timer)
		return;
	heap_put(loop, index, last);
	heap_up(loop, index);
	heap_down(loop, last->index);
}

int timer_wait(const struct event_loop *loop)
{
	uint64_t now, left;

	if (loop->n_timers == 0)
		return -1;
	now = event_now();
	if (loop->heap[1]->deadline <= now)
		return 0;
	left = (loop->heap[1]->deadline - now + 999) / 1000;
	return (int)MIN(left, (uint64_t)INT_MAX);
}

void timer_slept(struct event_loop *loop, uint64_t slept)
{
	uint64_t gap = slept - loop->slept;

	/* The two clocks are read one after the other. */
	if (slept < loop->slept || gap < SLEEP_MIN_US)
		return;
	loop->slept = slept;
	for (size_t i = 1; i <= loop->n_timers; i++)
		if (!loop->heap[i]->calendar)
			loop->heap[i]->deadline += gap;
	for (size_t i = loop->n_timers / 2; i > 0; i--)
		heap_down(loop, i);
}

void timer_run(struct event_loop *loop, struct slice *slice)
{
	uint64_t now;

	timer_slept(loop, machine_slept());
	now = loop->n_timers ? event_now() : 0;

	while (loop->n_timers && loop->heap[1]->deadline <= now && slice_take(slice)) {
		struct timer *timer = loop->heap[1];

		timer_clear(loop, timer);
		turn_begin(loop);
		timer->fn(timer);
	}
}
