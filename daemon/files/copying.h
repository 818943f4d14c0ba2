/* Copies from file to file that take long, in pieces: at most a millisecond of each round, and as long a rest. */
#pragma once

#include "base/event.h"

#include <sys/types.h>

struct copying {
	struct event_loop *loop;
	int from, to; /* borrowed */
	off_t at;     /* in the first */
	uint64_t left;
	struct timer timer;
	void (*on_done)(struct copying *copying, int r);
};

/* Append @size bytes from @at on to what @to has. @on_done is told 0 or -errno, -EBADMSG if @from is shorter, in a
 * later round. Returns 0 or -ENOMEM. */
int copying_begin(struct copying *copying, struct event_loop *loop, int from, off_t at, uint64_t size, int to,
		  void (*on_done)(struct copying *copying, int r));
/* Nobody is told. Harmless if it is over, or (all zeroes) has never begun. */
void copying_stop(struct copying *copying);
