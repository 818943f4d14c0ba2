/* Long copies from file to file, in pieces: at most a millisecond in each round, and a rest of the same length. */
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

/* Append @size bytes from @at on to @to. In a later round @on_done gets 0 or -errno, -EBADMSG if @from is
 * shorter. Returns 0 or -ENOMEM. */
int copying_begin(struct copying *copying, struct event_loop *loop, int from, off_t at, uint64_t size, int to,
		  void (*on_done)(struct copying *copying, int r));
/* Stop without calling @on_done. Harmless if the copy is over, or (all zeroes) has never begun. */
void copying_stop(struct copying *copying);
