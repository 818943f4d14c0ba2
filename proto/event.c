/* Descriptors and deadlines. The heap holds pointers to timers that live in their owners; each timer knows its
 * place, so that clearing one is as cheap as setting it. */
#include "event.h"

#include <limits.h>

#define SLEEP_MIN_US 500000
/* Who has had no turn for so long is not there. */
#define GONE_US 1000000
/* Of the time, one part may be of what takes long. */
#define PARTS 8
#define LONG_US 1000
/* A party whose turns usually take longer than it costs to settle a round. */
#define HEAVY_US 60

int event_loop_init(struct event_loop *loop)
{
	*loop = (struct event_loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .slept = event_slept()};
	list_init(&loop->waiting);
	list_init(&loop->files);
	party_init(&loop->own);
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
	bool file = epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0;

	if (file && errno != EPERM)
		return -errno;
	*source = (struct event_source){.fd = fd, .events = events, .fn = fn, .party = &loop->own};
	list_init(&source->turn);
	list_init(&source->file);
	if (file)
		list_append(&loop->files, &source->file);
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

/* @source has nothing to be done now. */
static void turn_end(struct event_source *source)
{
	list_remove(&source->turn);
	if (list_empty(&source->party->ready))
		list_remove(&source->party->node);
	source->ready = 0;
}

void event_give(struct event_source *source, struct party *party)
{
	if (source->fd < 0)
		return;
	/* What is ready is seen again. */
	turn_end(source);
	source->party = party;
}

void event_remove(struct event_loop *loop, struct event_source *source)
{
	if (source->fd >= 0) {
		(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
		list_remove(&source->file);
		turn_end(source);
	}
	source->fd = -1;
}

int event_set(struct event_loop *loop, struct event_source *source, int fd, uint32_t events,
	      void (*fn)(struct event_source *source, uint32_t events))
{
	if (source->fd >= 0 && source->fd == fd && events) {
		event_change(loop, source, events);
		return 0;
	}
	event_remove(loop, source);
	return fd >= 0 && events ? event_add(loop, source, fd, events, fn) : 0;
}

/* ---- turns ---- */

bool slice_take(struct slice *slice)
{
	if (slice->things == 0)
		return false;
	slice->few -= slice->few > 0;
	/* The clock is not looked at for the first. */
	if (event_now() >= slice->until || (slice->few == 0 && slice->owed && *slice->owed > slice->owed_max))
		slice->things = 0;
	else
		slice->things--;
	return true;
}

void party_init(struct party *party)
{
	*party = (struct party){.spent = 0};
	list_init(&party->node);
	list_init(&party->ready);
}

void party_wake(struct party *party, const struct event_loop *loop)
{
	party->spent = MAX(party->spent, loop->clock);
}

void party_turn(const struct party *party, struct event_loop *loop, uint64_t now)
{
	loop->clock = MAX(loop->clock, party->spent);
	if (party == loop->last || party == &loop->own)
		return;
	if (loop->last)
		loop->changed = now;
	loop->last = party;
}

uint64_t party_waits(const struct party *party, const struct event_loop *loop)
{
	uint64_t now = event_now();

	return now < party->due && now < loop->changed + GONE_US ? party->due - now : 0;
}

void party_took(struct party *party, uint64_t us)
{
	party->spent += us;
	if (us >= LONG_US)
		party->due = MAX(party->due, event_now()) + PARTS * us;
}

static bool is_heavy(const struct party *party)
{
	return party->usual > 8 * HEAVY_US;
}

static void turn_begin(struct event_loop *loop)
{
	if (loop->on_turn)
		loop->on_turn(loop);
}

bool event_pending(const struct event_loop *loop)
{
	return !list_empty(&loop->waiting);
}

static void line_up(struct event_loop *loop, struct event_source *source, uint32_t ready)
{
	struct party *party = source->party;

	source->ready |= ready;
	if (!list_empty(&source->turn))
		return;
	if (list_empty(&party->ready)) {
		party_wake(party, loop);
		list_append(&loop->waiting, &party->node);
	}
	list_append(&party->ready, &source->turn);
}

int event_wait(struct event_loop *loop, int ms)
{
	struct event_source *file;
	int n;

	list_for_each (file, &loop->files, file)
		if (file->events)
			line_up(loop, file, file->events);
	n = epoll_wait(loop->epoll_fd, loop->batch, EVENT_BATCH, event_pending(loop) ? 0 : ms);
	if (n < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < n; i++)
		line_up(loop, loop->batch[i].data.ptr, loop->batch[i].events);
	return 0;
}

static struct party *next_party(struct event_loop *loop)
{
	struct party *party, *next = NULL;

	list_for_each (party, &loop->waiting, node)
		if (!next || party->spent < next->spent)
			next = party;
	return next;
}

static void handle(struct event_loop *loop, struct party *party, struct event_source *source, uint32_t events)
{
	uint64_t begun = event_now(), took;

	party_turn(party, loop, begun);
	turn_begin(loop);
	source->fn(source, events);
	took = event_now() - begun + 1;
	party->usual += took - party->usual / 8;
	party_took(party, took);
}

void event_dispatch(struct event_loop *loop, struct slice *slice)
{
	struct party *party;
	bool light = false;

	while ((party = next_party(loop))) {
		struct event_source *source = container_of(list_first(&party->ready), struct event_source, turn);
		/* What came of a light turn does not wait for heavy ones: they have the next round. */
		if (light && is_heavy(party))
			break;
		/* It may have changed its mind since it was seen to be ready. */
		uint32_t events = source->ready & (source->events | EPOLLHUP | EPOLLERR);

		if (events && !slice_take(slice))
			break;
		turn_end(source);
		if (events)
			handle(loop, party, source, events);
		light |= events && party != &loop->own && !is_heavy(party);
	}
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

	timer_slept(loop, event_slept());
	now = loop->n_timers ? event_now() : 0;

	while (loop->n_timers && loop->heap[1]->deadline <= now && slice_take(slice)) {
		struct timer *timer = loop->heap[1];

		timer_clear(loop, timer);
		turn_begin(loop);
		timer->fn(timer);
	}
}

int timer_set_in(struct event_loop *loop, struct timer *timer, double seconds, void (*fn)(struct timer *timer))
{
	/* Rounded up: no other clock may find it too early. */
	return timer_set(loop, timer, event_now() + (uint64_t)(MAX(seconds, 0.0) * 1e6) + 2, fn);
}

int event_round(struct event_loop *loop, int ms)
{
	struct slice all = {.until = UINT64_MAX, .things = SIZE_MAX, .few = SIZE_MAX};
	int due = timer_wait(loop), r;

	r = event_wait(loop, due < 0 || (ms >= 0 && ms < due) ? ms : due);
	if (r)
		return r;
	event_dispatch(loop, &all);
	timer_run(loop, &all);
	return 0;
}
