/* A family while it is revived: shared by revive.c and revive_session.c. */
#pragma once

#include "family.h"

/* Where a record is that belongs to something: code and displays to a promise, the subject of a question to its
 * number, entries to a session. */
struct position {
	uint64_t whose, at;
	const struct wire_schema *schema;
};

/* A family of the last router, whose ledger is read and whose objects are not made yet. */
struct old_family {
	struct list node;
	uint64_t family;
	struct ledger ledger;
	char *text;
	struct family_record record; /* points into text, like all below */
	struct bytes profile;
	struct position *positions; /* sorted by owner, and then as they were written */
	size_t n_positions, allocated;
};

/* The objects that are being made, and the records they are made from. */
struct revival {
	struct families *families;
	const struct old_family *old;
	struct warden *warden;
};

/* The next record of some kind that belongs to @whose, in the order in which they were written; start with *@next
 * == 0. False after the last. */
bool old_family_record(const struct old_family *old, size_t *next, const struct wire_schema *schema, uint64_t whose,
		       void *record);
/* Revive a session; its interpreters exist already. Returns 0 or -errno. */
int revival_session(const struct revival *revival, struct bytes body);
