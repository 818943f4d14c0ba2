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

struct event_loop {
	int epoll_fd;
	struct timer **heap; /* from 1 */
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

/* Wait for at most @ms milliseconds, or for ever with -1, and handle what is ready. A source removed meanwhile is
 * not called; its memory must last until this returns. Returns 0 or -errno. */
int event_dispatch(struct event_loop *loop, int ms);

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
void timer_run(struct event_loop *loop);
/* The machine has slept for so long in all. Those that are not of the calendar get back what is new of it. */
void timer_slept(struct event_loop *loop, uint64_t slept);
