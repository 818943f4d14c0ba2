/* What a router knows, in a memory file that outlives it: records, each after its length. A record without a length
 * was not written: whoever began it has done nothing yet that depends on it.
 *
 * A ledger stays the same file for as long as there is one, so whoever keeps its descriptor has what is in it now:
 * it is begun anew within the file, behind what is in force, and takes its place in one step. */
#pragma once

#include "proto/wire.h"

struct ledger {
	int fd; /* -1: there is none yet */
	char *map;
	uint64_t begin; /* where in the file the records are */
	uint64_t room;	/* how much of it from there on is mapped; zeroes from @size on */
	uint64_t size;
	uint64_t vacant; /* from here on nothing in the file is in force */
	bool in_force;	 /* what is at @begin: the next router reads this */
	bool stored;	 /* the keeper has the descriptor; for the owner, who stores it */
	msgpack_sbuffer record;
};

void ledger_init(struct ledger *ledger);
void ledger_deinit(struct ledger *ledger);

/* Begin anew, in a file that is made if there is none. What is appended from now on takes the place of all that
 * was, once it is put in force; until then the next router reads what was. Return 0 or -errno. */
int ledger_renew(struct ledger *ledger);
int ledger_put_in_force(struct ledger *ledger);
/* One that the last router has written, which becomes the ledger's; what was begun at its end goes. Returns 0 or
 * -errno. */
int ledger_open(struct ledger *ledger, int fd);

/* What comes after @size has not happened. Returns 0 or -errno. */
int ledger_cut(struct ledger *ledger, uint64_t size);

/* Returns 0 or -errno, with nothing written. */
int ledger_append(struct ledger *ledger, const struct wire_schema *schema, const void *record);

/* Whether it is to be renewed: it is not in force, or less than half of it is alive. @alive: how many bytes a
 * renewed one would have; never fewer, or it would be renewed again and again. */
bool ledger_is_stale(const struct ledger *ledger, uint64_t alive);
/* What a record takes besides the bytes in it, at most. */
#define LEDGER_RECORD_OVERHEAD 256

/* All of it at once, the caller's to free. Returns 0 or -errno. */
int ledger_read(const struct ledger *ledger, char **textp);
/* The next record of what was read. Start with *@at == 0. False at the end, or where it makes no sense. */
bool ledger_next(const struct ledger *ledger, const char *text, uint64_t *at, struct wire_frame *record);
