/* What the router waits for: descriptors in one epoll set, deadlines in one heap. */
#pragma once

#include "list.h"

#include <sys/epoll.h>

struct event_loop;

/* Embedded in whatever owns the descriptor. @fd is -1 while it is in no set. */
struct event_source {
	int fd;
	uint32_t events;
	void (*fn)(struct event_source *source, uint32_t events);
};

#define EVENT_SOURCE_NONE ((struct event_source){.fd = -1})

/* Embedded likewise. @index is 0 while it is not armed. */
struct timer {
	uint64_t deadline; /* microseconds of event_now() */
	size_t index;
	bool calendar; /* due at its time whatever happens; others get back the time that the machine slept */
	void (*fn)(struct timer *timer);
};

/* How much is done in one go: one thing at least, unless it is none. */
struct slice {
	uint64_t until; /* event_now() */
	size_t things;
};

#define EVENT_BATCH 64

struct event_loop {
	int epoll_fd;
	struct epoll_event batch[EVENT_BATCH]; /* what is ready; from @next on it has not had its turn */
	int n_batch, next;
	void (*on_turn)(struct event_loop *loop); /* before anybody is called; or NULL */
	struct timer **heap;			  /* from 1 */
	size_t n_timers, allocated;
	uint64_t slept; /* by the machine, as of the last round */
};

int event_loop_init(struct event_loop *loop);
void event_loop_deinit(struct event_loop *loop);

/* Level-triggered. @fd stays the caller's. Returns 0 or -errno. */
int event_add(struct event_loop *loop, struct event_source *source, int fd, uint32_t events,
	      void (*fn)(struct event_source *source, uint32_t events));
/* Wait for other events; 0 pauses. */
void event_change(struct event_loop *loop, struct event_source *source, uint32_t events);
/* Before closing the descriptor. Harmless on one that is in no set. */
void event_remove(struct event_loop *loop, struct event_source *source);

/* Wait for at most @ms milliseconds, or for ever with -1, if nobody waits for a turn, and handle what is ready. Who
 * has had no turn when @slice is used up, has it first the next time. A source removed meanwhile is not called.
 * Returns 0 or -errno. */
int event_dispatch(struct event_loop *loop, int ms, struct slice *slice);
/* Only wait, so that a slice can begin when something is there. */
int event_wait(struct event_loop *loop, int ms);
/* Whether somebody waits for a turn. */
bool event_pending(const struct event_loop *loop);
/* Begin one more thing, if there is room for it. */
bool slice_take(struct slice *slice);

/* Microseconds, monotonic. It goes on while the machine sleeps. */
uint64_t event_now(void);
/* As clients are told such times. */
static inline double event_seconds(uint64_t us)
{
	return (double)us / 1e6;
}

/* Arm, or arm anew. Returns 0 or -ENOMEM. */
int timer_set(struct event_loop *loop, struct timer *timer, uint64_t deadline, void (*fn)(struct timer *timer));
void timer_clear(struct event_loop *loop, struct timer *timer);
/* Milliseconds until the next deadline, rounded up; -1 = none. */
int timer_wait(const struct event_loop *loop);
void timer_run(struct event_loop *loop, struct slice *slice);
/* The machine has slept for so long in all. Those that are not of the calendar get back what is new of it. */
void timer_slept(struct event_loop *loop, uint64_t slept);
