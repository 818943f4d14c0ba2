/* The audit log: JSON, one object a line, for an operator who wants to know afterwards who ran what and what was
 * refused. What sessions say of themselves is in there as they said it, escaped. */
#pragma once

#include "proto/base.h"

struct session;
struct cell;

#define AUDIT_BLOCKED_MAX 1000 /* acts of one cell */

/* Append to @path from now on, made 0600 if it is missing; NULL for no log. @fdp is -1 or the log so far, which
 * stays when there is an error. Returns 0, -EINVAL (no regular file) or -errno. */
int audit_log_open(int *fdp, const char *path);

/* Each is nothing without a log. */
void audit_log_opened(const struct session *session);
/* A cell begins: which code, by its SHA-256. */
void audit_log_exec(const struct session *session, const struct cell *cell);
/* What the cage refused it: @blocked as in `done`. */
void audit_log_blocked(const struct session *session, const struct cell *cell, struct bytes blocked);
void audit_log_ended(const struct session *session, const char *cause);
