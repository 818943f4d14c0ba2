/* The files of a session's states: kept after each cell that has changed some, and brought back with the state. The
 * warden does it; here is when, and which. A cell begins only when the files that it may overwrite are kept. */
#pragma once

#include "session.h"

struct done_message;

void filing_init(struct session *session);
void filing_deinit(struct session *session);

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
 * way; then session_restore_after_sweep follows. */
bool filing_bring(struct session *session);
/* It has a checkpoint; nobody needs @number for that any more. */
void filing_on_frozen(struct session *session, struct checkpoint *checkpoint);
void filing_unused(struct session *session, uint64_t number);
/* Whether all files of that state are kept. */
bool filing_has_all(const struct session *session, const struct checkpoint *checkpoint);
/* A branch begins, from @from. @copy: it gets files of its own. */
void filing_branch(struct session *session, const struct checkpoint *from, bool copy);
/* It begins in the middle of a cell of @parent, in the same files. */
void filing_split(struct session *session, const struct session *parent);
/* It has its copy: make that what the state has. Returns 1 if that is under way, and operation_on_born follows; 0
 * if there is nothing to do, or -errno. */
int filing_on_born(struct session *session);

void filing_on_kept(struct session *session, const struct files_kept_message *kept);
void filing_on_back(struct session *session, const struct files_back_message *back);

/* What a reply says of them; it is told once. */
void filing_told(struct session *session);
