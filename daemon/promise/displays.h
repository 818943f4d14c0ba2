/* The displays of a cell, up to a limit, for its reply and for clients that come to watch later. */
#pragma once

#include "front/user.h"

#include "proto/message.h"

#define DISPLAYS_SIZE_MAX ((size_t)16 << 20)
#define DISPLAYS_MAX 256

struct displays {
	struct list list; /* oldest first */
	uint64_t total;	  /* whatever became of them */
	size_t n, size;
	uint64_t dropped;
	struct user *user; /* who pays, twice: they are in the ledger, too. NULL: nobody */
};

void displays_init(struct displays *displays);
void displays_deinit(struct displays *displays);

/* Number it, and keep a copy. An update replaces the display with its display_id; one that clears replaces all.
 * Returns whether the kept displays have changed. */
bool displays_add(struct displays *displays, struct shown *shown);

/* Keep no more: the displays kept so far count as dropped. */
void displays_give_up(struct displays *displays);

/* All kept displays, as an array of `shown`; the caller's to destroy. Empty if there are none. Returns 0 or
 * -ENOMEM. */
int displays_join(const struct displays *displays, msgpack_sbuffer *buffer);

/* The same array, walked as by wire_next. */
bool displays_next(struct bytes array, size_t *cursor, struct shown *shown);
