/* The event loop: descriptors in one epoll set, deadlines in one heap. Ready sources take turns: the next turn is
 * that of the party whose sources have taken the least time. The router has one party a user; a program of one
 * party calls event_round. */
#pragma once

#include "list.h"

#include <sys/epoll.h>

struct event_loop;

/* A party owns sources and pays for them. It is embedded in a user, or whoever pays. */
struct party {
	struct list node;  /* in the loop, while a source is ready */
	struct list ready; /* sources, first come first served */
	uint64_t spent;	   /* microseconds that its sources have taken, see party_wake */
	uint64_t usual;	   /* how long an event of it takes lately, in 1/8 of microseconds */
	uint64_t due;	   /* event_now() when its last long turn has been paid for, see party_waits */
};

/* Embedded in the owner of the descriptor. @fd is -1 while it is in no set. */
struct event_source {
	int fd;
	uint32_t events, ready;
	struct party *party;
	struct list turn; /* in its party, while the source is ready */
	struct list file; /* in the loop, if epoll does not take it */
	void (*fn)(struct event_source *source, uint32_t events);
};

#define EVENT_SOURCE_NONE ((struct event_source){.fd = -1})

/* Embedded in its owner. @index is 0 while it is not armed. */
struct timer {
	uint64_t deadline; /* microseconds of event_now() */
	size_t index;
	bool calendar; /* due at its time in any case; other timers get back the time that the machine slept */
	void (*fn)(struct timer *timer);
};

/* How much is done in one round. It is at least one thing, if there is any. */
struct slice {
	uint64_t until; /* event_now() */
	size_t things;
	const uint64_t *owed; /* how many microseconds of work afterwards these things cause; NULL: none */
	uint64_t owed_max;    /* from so much on the round takes only a few things */
	size_t few;
};

#define EVENT_BATCH 512

struct event_loop {
	int epoll_fd;
	struct epoll_event batch[EVENT_BATCH];
	struct list waiting;			  /* parties with something ready */
	struct list files;			  /* sources that are always ready: files, /dev/null */
	struct party own;			  /* of sources that belong to nobody */
	uint64_t clock;				  /* the spent time of the party whose turn was last */
	const struct party *last;		  /* not our own */
	uint64_t changed;			  /* event_now() when another party had a turn */
	void (*on_turn)(struct event_loop *loop); /* called before each turn; or NULL */
	struct timer **heap;			  /* from 1 */
	size_t n_timers, allocated;
	uint64_t slept; /* how long the machine has slept, as of the last round */
};

int event_loop_init(struct event_loop *loop);
void event_loop_deinit(struct event_loop *loop);

/* Level-triggered. @fd stays the caller's. A file is always ready. Returns 0 or -errno. */
int event_add(struct event_loop *loop, struct event_source *source, int fd, uint32_t events,
	      void (*fn)(struct event_source *source, uint32_t events));
/* Wait for other events; 0 pauses. */
void event_change(struct event_loop *loop, struct event_source *source, uint32_t events);
/* From now on the source is @party's, and no longer the loop's own. */
void event_give(struct event_source *source, struct party *party);
/* The same as event_add, event_change or event_remove, whichever is needed; 0: not even a hang-up counts. @source
 * was EVENT_SOURCE_NONE at first. Returns 0 or -errno. */
int event_set(struct event_loop *loop, struct event_source *source, int fd, uint32_t events,
	      void (*fn)(struct event_source *source, uint32_t events));
/* Before closing the descriptor. Harmless on one that is in no set. */
void event_remove(struct event_loop *loop, struct event_source *source);

/* Find out which sources are ready. If nobody waits for a turn, wait for at most @ms milliseconds, or for ever
 * with -1. Returns 0 or -errno. */
int event_wait(struct event_loop *loop, int ms);
/* Handle ready sources until @slice is used up. The others wait for the next round. A source that is removed
 * meanwhile is not called. */
void event_dispatch(struct event_loop *loop, struct slice *slice);
/* All of it once: wait until something is ready or due, at most @ms milliseconds, or for ever with -1, and handle
 * it. Returns 0 or -errno. */
int event_round(struct event_loop *loop, int ms);
/* Whether somebody waits for a turn. */
bool event_pending(const struct event_loop *loop);

void party_init(struct party *party);
/* The party has had nothing to do until now. It does not save up the time of its pause. */
void party_wake(struct party *party, const struct event_loop *loop);
/* A turn of the party begins. */
void party_turn(const struct party *party, struct event_loop *loop, uint64_t now);
/* A turn is not interrupted, so each long turn delays all others. If there are others, a party may begin a long
 * turn only now and then. Returns how many microseconds from now it may begin one; 0: now. */
uint64_t party_waits(const struct party *party, const struct event_loop *loop);
/* A turn of the party took so many microseconds. */
void party_took(struct party *party, uint64_t us);
/* Begin one more thing; false if the slice is used up. */
bool slice_take(struct slice *slice);

/* Microseconds, monotonic. It goes on while the machine sleeps. This function and the next are in a file of
 * their own, so that a test can link a clock that it sets. */
uint64_t event_now(void);
/* How many of these microseconds the machine has slept since it was started. */
uint64_t event_slept(void);
/* In seconds, as clients are told times. */
static inline double event_seconds(uint64_t us)
{
	return (double)us / 1e6;
}

/* Arm, or arm anew. Returns 0 or -ENOMEM. */
int timer_set(struct event_loop *loop, struct timer *timer, uint64_t deadline, void (*fn)(struct timer *timer));
/* The same, so many seconds from now. */
int timer_set_in(struct event_loop *loop, struct timer *timer, double seconds, void (*fn)(struct timer *timer));
void timer_clear(struct event_loop *loop, struct timer *timer);
/* Milliseconds until the next deadline, rounded up; -1 = none. */
int timer_wait(const struct event_loop *loop);
void timer_run(struct event_loop *loop, struct slice *slice);
/* The machine has slept for so long in all. Timers that are not of the calendar get back what is new of it. */
void timer_slept(struct event_loop *loop, uint64_t slept);
