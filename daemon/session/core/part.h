/* The three rooms of a session, lowest first.
 *
 * core/ is a session as an object, and all that each part of it may do: output, clocks, requests that wait, lists
 * of what it has done, its name. It knows no part and no state but by name.
 *
 * parts/ are features with state of their own: calls, filing, saving and so on. A part acts on its session through
 * core/ alone. If something follows that is not its own, it posts an event (events.h), as session_end does, and the
 * table of states decides. So nothing below that table needs it.
 *
 * life/ is that table, its steps, and messages of wardens and interpreters, which become events. It has the parts
 * act: in the cells of the table, and through their rows where something happens to all of them.
 *
 * A row has the hooks of a part for the moments of a session's life, and what the next router must know of it. So
 * whatever happens to a whole session names no part. A hook may be NULL. */
#pragma once

#include "session.h"

#include "proto/wire.h"

struct ledger;

struct part {
	const char *name;			     /* in the record of the session */
	void (*init)(struct session *session);	     /* all its state is zero before */
	void (*deinit)(struct session *session);     /* also of a session that has only been initialised */
	void (*on_exit)(struct session *session);    /* the interpreter is dead, another may follow */
	void (*on_end)(struct session *session);     /* nothing follows; its interpreters still exist */
	void (*on_revived)(struct session *session); /* it is as it was with the last router, without timers */
	void (*on_idle)(struct session *session);    /* nothing waits */
	/* It begins as a branch of @parent: from a checkpoint, or (@from NULL) in the middle of its cell. */
	void (*on_branch)(struct session *session, const struct session *parent, const struct checkpoint *from);
	/* The deadline has come. Returns whether that was the part's, which has done what is to be done. */
	bool (*on_late)(struct session *session);
	/* What is being done for the running cell; NULL: nothing that takes long. Static, or the part's. */
	const char *(*doing)(const struct session *session);

	/* The state for the next router: append one value, or nothing if there is none; and read it back. Return 0
	 * or -errno. */
	int (*put)(msgpack_sbuffer *buffer, const struct session *session);
	int (*take)(struct session *session, struct bytes value);

	/* Its list of records in the family's ledger: where in the session; and one is read back, before @take. */
	const struct wire_schema *schema; /* NULL: it has none */
	size_t list;
	void (*read)(struct session *session, const void *record);
};

#define parts_for_each(at, session) for (const struct part *const *at = (session)->sessions->parts; *at; at++)
/* Call a hook of all parts that have it. */
#define parts_call(hook, session) parts_for_each(part_, session) if ((*part_)->hook)(*part_)->hook(session)

void parts_branch(struct session *session, const struct session *parent, const struct checkpoint *from);
bool parts_late(struct session *session);
/* The state of all parts as one map, appended; and back. Return 0 or -errno. */
int parts_put(msgpack_sbuffer *buffer, const struct session *session);
int parts_take(struct session *session, struct bytes values);
void parts_init(struct session *session);
void parts_deinit(struct session *session);
/* Write the records that are due, as is all since the ledger begins anew; how many bytes they take there. */
int parts_write(struct session *session, struct ledger *ledger);
void parts_rewrite(struct session *session);
uint64_t parts_alive(const struct session *session);
