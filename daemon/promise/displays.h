/* What a cell has shown, up to a limit, for its reply and for those who come to watch later. */
#pragma once

#include "front/user.h"

#include "proto/message.h"

#define DISPLAYS_SIZE_MAX ((size_t)16 << 20)
#define DISPLAYS_MAX 256
#define BUNDLE_MAX 64
#define ERROR_FRAMES_MAX 128
#define ARTIFACTS_MAX 256
#define BLOCKED_ACTS_MAX 64
#define BLOCKED_SIZE_MAX ((size_t)64 << 10) /* lair-kernel tells less than 1 KiB of each */

struct displays {
	struct list list; /* oldest first */
	uint64_t total;	  /* whatever became of them */
	size_t n, size;
	uint64_t dropped;
	struct user *user; /* who pays, twice: they are in the ledger, too. NULL: nobody */
};

void displays_init(struct displays *displays);
void displays_deinit(struct displays *displays);

/* Number it, and keep a copy. It takes the place of the one with its display_id if it is an update, and of all if
 * it clears. Returns whether what is kept has changed. */
bool displays_add(struct displays *displays, struct shown *shown);

/* Keep nothing: what was kept is counted as dropped. */
void displays_give_up(struct displays *displays);

/* All that is kept, as an array of `shown`; the caller's to destroy. Empty if there is nothing. Returns 0 or
 * -ENOMEM. */
int displays_join(const struct displays *displays, msgpack_sbuffer *buffer);

/* The same array, walked as by wire_next. */
bool displays_next(struct bytes array, size_t *cursor, struct shown *shown);

/* An interpreter may send anything, and a reply with too many values in it would be refused by its reader. Whether
 * @data is a map of str to str or bin; whether @raw is absent, or an array of at most @max maps that @schema
 * describes; whether it is absent, or a cell_error. */
bool bundle_valid(struct bytes data);
bool records_valid(struct bytes raw, const struct wire_schema *schema, size_t max);
bool error_valid(struct bytes raw);
