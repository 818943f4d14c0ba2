/* A ledger: records of a router in a memory file that outlives it, each after its length. A record without a
 * length was not written: its router has not yet done anything that depends on it.
 *
 * A ledger stays the same file all its life, so the holder of its descriptor always has the present content. A
 * new version is written in the same file, behind the version in force, and replaces it in one step. */
#pragma once

#include "base/text.h"

struct ledger {
	int fd; /* -1: there is none yet */
	char *map;
	uint64_t begin; /* where in the file the records are */
	uint64_t room;	/* how many bytes from there on are mapped; zeroes from @size on */
	uint64_t size;
	uint64_t vacant; /* from here on nothing in the file is in force */
	bool in_force;	 /* what is at @begin: the next router reads this */
	bool stored;	 /* the keeper has the descriptor; for the owner, who stores it */
};

void ledger_init(struct ledger *ledger);
void ledger_deinit(struct ledger *ledger);

/* Begin a new version, in a new file if there is none. Records that are appended from now on belong to it. Until
 * it is put in force, the next router reads the old version. Return 0 or -errno. */
int ledger_renew(struct ledger *ledger);
int ledger_put_in_force(struct ledger *ledger);
/* Open the ledger of the last router; @fd becomes the ledger's. A new version that was not put in force is
 * dropped. Returns 0 or -errno. */
int ledger_open(struct ledger *ledger, int fd);

/* Drop everything after @size: it has not happened. Returns 0 or -errno. */
int ledger_cut(struct ledger *ledger, uint64_t size);

/* Returns 0; or -errno, with nothing written. */
int ledger_append(struct ledger *ledger, const struct wire_schema *schema, const void *record);

/* The same for a record that is encoded already. */
int ledger_append_long(struct ledger *ledger, const struct text *text);

/* True if the ledger must be rewritten: it is not in force, or less than half of it is alive. @alive: how many
 * bytes a new version would have; never less than that, or it would be rewritten again and again. */
bool ledger_is_stale(const struct ledger *ledger, uint64_t alive);
/* How many bytes a record takes at most, besides the bytes in its fields. */
#define LEDGER_RECORD_OVERHEAD 256

/* All of its text at once, the caller's to free. Returns 0 or -errno. */
int ledger_read(const struct ledger *ledger, char **textp);
/* The next record of that text. Start with *@at == 0. False at the end, or at a malformed record. */
bool ledger_next(const struct ledger *ledger, const char *text, uint64_t *at, struct wire_frame *record);
