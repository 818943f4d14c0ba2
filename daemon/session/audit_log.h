/* The audit log: JSON, one object a line, for an operator who wants to know afterwards who ran what and what was
 * refused. What sessions say of themselves is in there as they said it, escaped.
 *
 * The router only says what there is to write, into a ring that outlives it (audit/ring.h); the scribe writes it
 * (audit/scribe.h). So no disk and no digest keeps the router waiting. When lines begin to be missed laird's log
 * says so, and when that is over, how many; the audit log has a line in their place. */
#pragma once

#include "audit/ring.h"

struct cell;
struct heirloom;
struct session;

struct audit_log {
	struct audit_ring ring; /* of none: there is no log */
	int scribe;		/* what wakes it, and ends it when it is closed everywhere */
	uint64_t missed;	/* since lines are missed, 0: they are not */
};

#define AUDIT_LOG_NONE ((struct audit_log){.ring = AUDIT_RING_NONE, .scribe = -1})

enum {
	_AUDIT_LOG_E_SUCCESS,
	AUDIT_LOG_E_SAME, /* it is the file that @now writes to */
};

/* Have lines appended to @path, which is made 0600 if it is missing, by a scribe of its own; NULL for no log. @now:
 * the log so far. Returns 0, AUDIT_LOG_E_SAME, -EINVAL (no regular file) or -errno. */
int audit_log_open(struct audit_log *log, const char *path, const struct audit_log *now);
/* The log that the last router had, if that is @path. No disk is touched for it. */
void audit_log_inherit(struct audit_log *log, struct heirloom *left, const char *path);
/* From now on @log is @fresh, for the next router as well. The scribe that was so far writes what it has. */
void audit_log_replace(struct audit_log *log, struct audit_log *fresh);
void audit_log_close(struct audit_log *log);

/* Each is nothing without a log. */
void audit_log_opened(const struct session *session);
/* A cell begins: which code, by its SHA-256. */
void audit_log_exec(const struct session *session, const struct cell *cell);
/* What the cage refused it: @blocked as in `done`. */
void audit_log_blocked(const struct session *session, const struct cell *cell, struct bytes blocked);
void audit_log_ended(const struct session *session, const char *cause);
