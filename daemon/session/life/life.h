/* The life of sessions: table.c has each state and what each event does in it. Here is what whoever serves clients
 * asks of them. */
#pragma once

#include "session/core/sessions.h"

/* ---- open.c ---- */

/* Instead of sessions_init. */
void life_init(struct sessions *sessions);
/* Open one; @id is checked, the limits are not. "" makes a one-shot. @with: see
 * cages_nursery_for. Returns 0 or -errno; -EAGAIN as from nursery_claim. What is opened
 * can take a cell. */
int sessions_open(struct session **sessionp, struct sessions *sessions, struct profile *profile, struct bytes id,
		  uid_t owner, const struct beginning *with);

/* ---- life.c ---- */

/* @kill: its interpreter is killed, and the session goes on from its last checkpoint. Whether a cell was running.
 */
bool session_interrupt(struct session *session, bool kill);
/* The same for the one cell that @request sent, which may still be waiting. Whether there was one. */
bool session_cancel(struct session *session, const struct address *request, bool kill);
/* The request is answered when it is done. */
void session_reset(struct session *session, const struct address *request);
void session_close(struct session *session, const struct address *request);
/* Do something with checkpoints at the next idle moment; the session owns @operation now, and answers it. The
 * caller has checked that no cell runs or waits. */
void session_operate(struct session *session, struct operation *operation);
/* What a client answers to an `ask` of the running cell. */
void session_answer(struct session *session, const struct input_request *input);
/* Its client reads again. */
void session_resume(struct session *session);
/* It is as a former router had it, except for its timers, which are set here. */
void session_on_revived(struct session *session);

/* ---- messages.c ---- */

/* How its warden tells it. */
extern const struct tenant_ops session_tenant_ops;
/* The types of what its interpreters may say; NULL after the last. */
const char *session_message_type(size_t i);
/* Do what the table says: table.c. */
void session_on_event(struct session *session, enum session_event event, const struct details *details);
