/* Saved states: a cell of laird's own saves the variables of a session, when a client asks for it or before the
 * session expires. Another cell loads them when its id is opened again. */
#pragma once

#include "session/core/session.h"

/* Save the state, and answer @request, a promise. Returns 0 or -ENOMEM. */
int saving_save(struct session *session, const struct address *request);
/* Load @saved, which is the session's from now on, before anything else that waits. @request: a promise, or NULL
 * with TELL_NEXT. Returns 0 or -ENOMEM. */
int saving_load(struct session *session, struct saved *saved, const struct address *request, enum telling telling);

/* Whether it is to be saved when it ends by itself, or laird does. */
bool saving_is_due(const struct session *session);
/* The session expires, for the reason @cause. */
void saving_expire(struct session *session, const char *cause);
/* An idle moment of one that expires: its last cell may be due, or its end. Whether it has ended. */
bool saving_proceed(struct session *session);
/* A client ends the session: a saved state that it came back from is deleted. */
void saving_close(struct session *session);

/* ---- cells that are tasks ---- */

/* Fetch what a load needs before it can run. Returns whether that is there. If not, the session goes on when it
 * is; if it cannot be fetched, the load is answered and removed. */
bool saving_fetch(struct session *session, struct cell *cell);
/* The interpreter says that the save is @done: what it has saved is written to the disk. Returns whether that is
 * over. */
bool saving_is_written(struct session *session, const struct done_message *done);
/* Send it to the interpreter. Returns 0 or -errno. */
int saving_send(struct session *session, struct cell *cell);
/* Answer it, as cell_reply does others. */
void saving_reply(struct session *session, struct cell *cell, const struct verdict *verdict);
void load_report_deinit(struct load_report *load_report);
