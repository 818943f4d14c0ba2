/* What the router waits for: descriptors in one epoll set, deadlines in one heap. What is ready takes turns: the
 * next one is of the party whose things have taken the least time. */
#pragma once

#include "list.h"

#include <sys/epoll.h>

struct event_loop;

/* Whose sources are ready, embedded in whoever pays for them. */
struct party {
	struct list node;  /* in the loop, while one is */
	struct list ready; /* sources, first come first served */
	uint64_t spent;	   /* microseconds that it has taken, see party_wake */
	uint64_t due;	   /* event_now() when what took long in one go has been paid for, see party_waits */
};

/* Embedded in whatever owns the descriptor. @fd is -1 while it is in no set. */
struct event_source {
	int fd;
	uint32_t events, ready;
	struct party *party;
	struct list turn; /* in its party, while it is ready */
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
	const uint64_t *owed; /* what is to be done afterwards because of them, in microseconds; NULL: nothing */
	uint64_t owed_max;    /* from so much on there are only few things */
	size_t few;
};

#define EVENT_BATCH 512

struct event_loop {
	int epoll_fd;
	struct epoll_event batch[EVENT_BATCH];
	struct list waiting;			  /* parties with something ready */
	struct party own;			  /* of what is nobody's */
	uint64_t clock;				  /* the time that the party had taken whose turn was last */
	const struct party *last;		  /* but for our own */
	uint64_t changed;			  /* event_now() when it took turns with another */
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
/* It is @party's from now on, and no longer the loop's own. That lasts as long as the source. */
void event_give(struct event_source *source, struct party *party);
/* Before closing the descriptor. Harmless on one that is in no set. */
void event_remove(struct event_loop *loop, struct event_source *source);

/* Wait for at most @ms milliseconds, or for ever with -1, if nobody waits for a turn, and see what is ready.
 * Returns 0 or -errno. */
int event_wait(struct event_loop *loop, int ms);
/* Handle it. Who has had no turn when @slice is used up waits for the next one. A source removed meanwhile is not
 * called. */
void event_dispatch(struct event_loop *loop, struct slice *slice);
/* Whether somebody waits for a turn. */
bool event_pending(const struct event_loop *loop);

void party_init(struct party *party);
/* It has had nothing to be done until now: time in which it wanted nothing is not saved up. */
void party_wake(struct party *party, const struct event_loop *loop);
/* It is its turn. */
void party_turn(const struct party *party, struct event_loop *loop, uint64_t now);
/* A turn is not interrupted, so for what takes long in one go others would have to wait, each time. While there are
 * others, such things begin only so often. Returns how many microseconds from now one may begin; 0: it may. */
uint64_t party_waits(const struct party *party, const struct event_loop *loop);
/* Something of its took so many microseconds. */
void party_took(struct party *party, uint64_t us);
/* Begin one more thing, if there is room for it. */
bool slice_take(struct slice *slice);

/* Microseconds, monotonic. It goes on while the machine sleeps. In a file of its own, like the next: a test may
 * link a clock that it sets. */
uint64_t event_now(void);
/* For how many of these the machine has slept since it was started. */
uint64_t event_slept(void);
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
