/* The audit log: JSON, one object a line. It tells an operator afterwards who ran what and what was refused.
 * Texts of sessions are in it unchanged, but escaped.
 *
 * The router only puts records into a ring that outlives it (audit/ring.h); the scribe writes them
 * (audit/scribe.h). So the router never waits for a disk or a digest. When lines begin to be missed, laird's log
 * says so, and how many when it is over; the audit log has a line in their place. */
#pragma once

#include "audit/ring.h"

struct cell;
struct vault_item;
struct session;
struct sessions;

struct audit_log {
	struct audit_ring ring; /* of none: there is no log */
	int scribe;		/* what wakes it, and ends it when it is closed everywhere */
	uint64_t missed;	/* since lines are missed, 0: they are not */
};

#define AUDIT_LOG_NONE ((struct audit_log){.ring = AUDIT_RING_NONE, .scribe = -1})

/* How long whoever waits for the scribe to open the file waits: less than the scribe. */
#define AUDIT_LOG_PATIENCE_MS 4000

enum {
	_AUDIT_LOG_E_SUCCESS,
	AUDIT_LOG_E_WAIT, /* the scribe has not said anything yet */
};

/* Begin a log that appends lines to @path, which is made 0600 if it is missing, by a scribe of its own. That opens
 * the file, and then audit_log_hear says what came of it: log->scribe can be read then. Returns 0 or -errno. */
int audit_log_begin(struct audit_log *log, const char *path);
/* Returns 0 (the file is open), AUDIT_LOG_E_WAIT, -EINVAL (no regular file) or -errno. */
int audit_log_hear(const struct audit_log *log);
/* Both, while nobody waits for us. Returns as audit_log_hear. */
int audit_log_open(struct audit_log *log, const char *path);
/* What to say of such a return. Returns @out. */
#define AUDIT_LOG_TROUBLE_SIZE 448
const char *audit_log_trouble(char out[static AUDIT_LOG_TROUBLE_SIZE], const char *path, int r);
/* Take over the log of the last router, if that is @path. No disk is touched for it. */
void audit_log_inherit(struct audit_log *log, struct vault_item *left, const char *path);
/* From now on the audit log is @fresh, for the next router as well. The scribe of the old log writes everything
 * that it has. But if both write to the same file, the old log goes on, and @fresh is closed. */
void audit_log_replace(struct sessions *sessions, struct audit_log *fresh);
/* How many lines its scribes could not make of what they found. */
uint64_t audit_log_left_out(const struct audit_log *log);
void audit_log_close(struct audit_log *log);

/* Each is nothing without a log. */
void audit_log_opened(const struct session *session);
/* A cell begins; its code is named by its SHA-256. */
void audit_log_exec(const struct session *session, const struct cell *cell);
/* What the cage refused to the cell: @blocked as in `done`. */
void audit_log_blocked(const struct session *session, const struct cell *cell, struct bytes blocked);
struct call;
struct returned_message;
/* A call of the cell is over, without an answer. @outcome: how. */
void audit_log_call(const struct session *session, const struct call *call, const char *outcome);
/* It is answered. @by: NULL: by its provider. */
void audit_log_answer(const struct session *session, const struct call *call, const struct returned_message *answer,
		      const uid_t *by);
void audit_log_approval(const struct session *session, const struct call *call, uid_t by);
void audit_log_ended(const struct session *session, const char *cause);
