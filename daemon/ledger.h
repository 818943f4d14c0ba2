/* What a router knows, in a memory file that outlives it: records, each after its length. A record without a length
 * was not written: whoever began it has done nothing yet that depends on it. */
#pragma once

#include "proto/wire.h"

struct ledger {
	int fd; /* -1: there is none yet */
	char *map;
	uint64_t room; /* how large the file is, and mapped; zeroes from @size on */
	uint64_t size;
	uint64_t dead; /* how much of that is out of date */
	msgpack_sbuffer record;
};

void ledger_init(struct ledger *ledger);
void ledger_deinit(struct ledger *ledger);

/* A fresh file in the place of the one there is. Returns 0 or -errno. */
int ledger_create(struct ledger *ledger);
/* One that the last router has written, which becomes the ledger's; what was begun at its end goes. Returns 0 or
 * -errno. */
int ledger_open(struct ledger *ledger, int fd);

/* What comes after @size has not happened. */
void ledger_cut(struct ledger *ledger, uint64_t size);

/* Returns 0 or -errno, with nothing written. */
int ledger_append(struct ledger *ledger, const struct wire_schema *schema, const void *record);

/* Whether it is time to write what is alive of it into a fresh one. @dead: bytes that are not, besides those it
 * counts itself. */
bool ledger_is_stale(const struct ledger *ledger, uint64_t dead);

/* All of it at once, the caller's to free. Returns 0 or -errno. */
int ledger_read(const struct ledger *ledger, char **textp);
/* The next record of what was read. Start with *@at == 0. False at the end, or where it makes no sense. */
bool ledger_next(const struct ledger *ledger, const char *text, uint64_t *at, struct wire_frame *record);
