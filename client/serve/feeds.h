/* Feeds: laird tells of a cell once, and the streams of many clients follow. */
#pragma once

#include "exchange.h"

struct feed;

enum { FEED_STDOUT, FEED_STDERR, FEED_DISPLAYS, N_FEED };

/* An exchange that follows a feed. Part of the exchange's state. */
struct follower {
	struct follower *previous, *next;
	struct feed *feed; /* NULL: none */
	struct exchange *exchange;
	uint64_t at[N_FEED]; /* how much it has had */
	bool behind[N_FEED]; /* it has not had all that the feed has had */
	bool asked;	     /* laird was asked to repeat what it misses */
};

/* The events of a follower. @follower->at is the end of the piece. */
struct feed_events {
	/* It follows a cell that is known to be there. */
	void (*on_joined)(struct follower *follower);
	void (*on_output)(struct follower *follower, enum lair_stream stream, struct lair_text data);
	void (*on_display)(struct follower *follower, const struct lair_display *display);
	void (*on_alive)(struct follower *follower, const struct lair_alive *alive);
	/* @call has an outcome; the follower follows nothing any more. */
	void (*on_done)(struct follower *follower, const struct lair_call *call);
	/* The cell has ended before the follower had all output: it has to ask for the result itself. */
	void (*on_missed)(struct follower *follower);
};

/* Follow the cell of @wanted, from wanted->from; its callbacks are not used. Returns 0, or what lair_attach
 * returns. */
int feed_follow(struct follower *follower, struct exchange *exchange, const struct lair_attach *wanted,
		const struct feed_events *events);
/* Also of one that follows none. */
void feed_leave(struct follower *follower);
/* The tenant's connection is gone. */
void feeds_free(struct tenant *tenant);
