/* The files of a session's states: kept after each cell that has changed some, and brought back with the state. The
 * warden does it; here is when, and which. A cell begins only when the files that it may overwrite are kept, and an
 * interpreter only when its files are back. */
#pragma once

#include "session/core/session.h"

struct done_message;
struct spawn_message;

/* Whether they are kept at all. */
bool filing_is_on(const struct session *session);

/* A cell has ended, or somebody else has put something there. */
void filing_note(struct session *session, const struct done_message *done);
void filing_note_put(struct session *session);
/* Keep them, if they have changed. */
void filing_keep(struct session *session);
/* The same before something begins that may change them. Whether it has to wait. */
bool filing_waits(struct session *session);

/* Others may have changed them since: the next thing that waits for them looks. */
void filing_doubt(struct session *session);

/* Everything of the old interpreter is gone: bring back those of the state that is wanted. Whether that is under
 * way; then EVENT_FILES follows. */
bool filing_bring(struct session *session);
/* It has a checkpoint; nobody needs @number for that any more. */
void filing_on_frozen(struct session *session, struct checkpoint *checkpoint);
void filing_unused(struct session *session, uint64_t number);
/* Whether all files of that state are kept. */
bool filing_has_all(const struct session *session, const struct checkpoint *checkpoint);
/* Put the files of its state into its directory before it lives; then EVENT_FILES follows. */
void filing_fill(struct session *session);
/* They are there: @how says so to the one that is to work there. */
void filing_filled(struct session *session, struct spawn_message *how);

/* From its warden. */
void filing_on_kept(struct tenant *tenant, const struct files_kept_message *kept);
void filing_on_back(struct tenant *tenant, const struct files_back_message *back);
/* The warden gets further with somebody's files. */
void filing_on_going(struct tenant *tenant);
/* The deadline has come, or somebody will not wait: what waited for files to be kept waits no longer. Whether they
 * were being brought back; then the warden is told to give that up, or, if it has been told, the session goes on
 * without it. */
bool filing_on_late(struct session *session);
/* Whether they are being brought back. */
bool filing_is_under_way(const struct session *session);

/* What a reply says of them; it is told once. */
void filing_told(struct session *session);
