/* What outlives a session: its variables are saved by a cell of ours, when a client asks for it or before the
 * session expires, and loaded by another when its id is opened again. */
#pragma once

#include "session.h"

/* Have the state saved, and @request, a promise, answered. Returns 0 or -ENOMEM. */
int saving_save(struct session *session, const struct address *request);
/* Have @saved, which is the session's from now on, loaded before anything else that waits. @request: a promise, or
 * NULL with TELL_NEXT. Returns 0 or -ENOMEM. */
int saving_load(struct session *session, struct saved *saved, const struct address *request, enum telling telling);

/* Whether it is to be saved when it ends by itself, or laird does. */
bool saving_is_due(const struct session *session);
/* Its time is over, for the reason @cause. */
void saving_expire(struct session *session, const char *cause);
/* An idle moment of one that expires: its last cell may be due, or its end. Whether it has ended. */
bool saving_proceed(struct session *session);
/* Somebody wants it to end: a state that it came back from is done with. */
void saving_close(struct session *session);

/* ---- cells that are tasks ---- */

/* What a load needs before it can run is fetched. Returns whether that is there: if not, the session proceeds when
 * it is; one that cannot be fetched is answered, and there no more. */
bool saving_fetch(struct session *session, struct cell *cell);
/* The interpreter says that the save is @done: what it has saved is written to the disk. Returns whether that is
 * over.
 */
bool saving_is_written(struct session *session, const struct done_message *done);
/* Send it to the interpreter. Returns 0 or -errno. */
int saving_send(struct session *session, struct cell *cell);
/* Answer it, as cell_reply does others. */
void saving_reply(struct session *session, struct cell *cell, const struct verdict *verdict);
void tidings_deinit(struct tidings *tidings);
