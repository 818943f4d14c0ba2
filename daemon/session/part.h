/* A part of a session is a feature with state of its own. Its row has the hooks for the moments of a session's
 * life, and what the next router must know of it. So whatever happens to a whole session goes through the rows, and
 * names no feature. A hook may be NULL. */
#pragma once

#include "proto/wire.h"

struct ledger;
struct session;

struct part {
	const char *name;			     /* in the record of the session */
	void (*init)(struct session *session);	     /* all its state is zero before */
	void (*deinit)(struct session *session);     /* also of a session that has only been initialised */
	void (*on_exit)(struct session *session);    /* the interpreter is dead, another may follow */
	void (*on_end)(struct session *session);     /* nothing follows; its interpreters still exist */
	void (*on_revived)(struct session *session); /* it is as it was with the last router, without timers */

	/* The state for the next router: append one value, or nothing if there is none; and read it back. Return 0
	 * or -errno. */
	int (*put)(msgpack_sbuffer *buffer, const struct session *session);
	int (*take)(struct session *session, struct bytes value);

	/* Records of its own in the family's ledger: write those that are due; all are due again, since the ledger
	 * begins anew; how many bytes they take there; and read one back, before @take. */
	int (*write)(struct session *session, struct ledger *ledger);
	void (*rewrite)(struct session *session);
	uint64_t (*alive)(const struct session *session);
	const struct wire_schema *schema;
	void (*read)(struct session *session, const void *record);
};

extern const struct part filing_part, saving_part, transfers_part;

/* In the order in which they are initialised; NULL after the last. */
extern const struct part *const session_parts[];

#define parts_for_each(at) for (const struct part *const *at = session_parts; *at; at++)
/* Call a hook of all parts that have it. */
#define parts_call(hook, session) parts_for_each(part_) if ((*part_)->hook)(*part_)->hook(session)

/* The state of all parts as one map, appended; and back. Return 0 or -errno. */
int parts_put(msgpack_sbuffer *buffer, const struct session *session);
int parts_take(struct session *session, struct bytes values);
/* Write the records that are due. Returns 0 or -errno. */
int parts_write(struct session *session, struct ledger *ledger);
uint64_t parts_alive(const struct session *session);
