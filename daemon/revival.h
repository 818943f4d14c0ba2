/* A family while it is brought back: what revive.c and revive_session.c share. */
#pragma once

#include "router.h"

/* One that has been read and not been made. */
struct remains {
	struct list node;
	uint64_t family;
	struct ledger ledger;
	char *text;
	struct family_record record; /* points into text, like all below */
	struct bytes profile;
};

/* What is being made, and what of. */
struct revival {
	struct router *router;
	const struct remains *remains;
	struct warden *warden;
};

/* A record of some kind, in the order in which they were written; start with *@at == 0. False after the last. */
bool remains_record(const struct remains *remains, uint64_t *at, const struct wire_schema *schema, void *record);
/* NULL if there is none. */
struct interpreter *revival_interpreter(const struct revival *revival, uint64_t serial);
/* The interpreters are there already. Returns 0 or -errno. */
int revival_session(const struct revival *revival, struct bytes body);
