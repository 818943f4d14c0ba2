/* The audit log: JSON, one object a line. It tells an operator afterwards who ran what and what was refused.
 * Texts of sessions are in it unchanged, but escaped.
 *
 * A line is in the file before the event has any effect: the cell runs after its line, the answer follows the lines
 * about it. Without its line a cell is refused, unless audit_required is off. Lines of other events, and of cells
 * with audit_required = off, are counted when they are missed; the log gets a line with their number. */
#pragma once

#include "audit/append.h"

struct cell;
struct session;
struct sessions;

struct audit_log {
	struct append_file *file; /* NULL: there is no log */
	bool failing;		  /* logged once */
};

#define AUDIT_LOG_NONE ((struct audit_log){.file = NULL})

/* A log that appends lines to @path. *@log owns it, also if its file cannot be opened now; each line tries that
 * again. Returns 0, or as append_lines. */
int audit_log_open(struct audit_log *log, const char *path);
/* The text for such a return. Returns @out. */
#define AUDIT_LOG_TROUBLE_SIZE 448
const char *audit_log_trouble(char out[static AUDIT_LOG_TROUBLE_SIZE], const char *path, int r);
/* From now on the audit log is @fresh. */
void audit_log_replace(struct sessions *sessions, struct audit_log *fresh);
void audit_log_close(struct audit_log *log);
/* No line follows: log how many are missing. */
void audit_log_end(struct sessions *sessions);

/* Each is nothing without a log. */
void audit_log_opened(const struct session *session);
/* A cell begins as @number; its code is named by its SHA-256. Returns whether it may run. */
bool audit_log_exec(const struct session *session, const struct cell *cell, uint64_t number);
/* The refusals of the cage: @blocked as in `done`. */
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
