/* The copy for a branch in the middle of a cell: the interpreter of a cell that waits for calls leaves a frozen
 * copy of itself, and the branch begins as a fork of that copy. Each of the two goes on with the cell, which is one
 * of its own from then on, and so are its calls. */
#pragma once

#include "session/core/session.h"

/* Begin, for @operation, which is answered here or when the branch lives. The caller has checked that a cell runs
 * that may call functions, and that none is under way. */
void split_begin(struct session *session, struct operation *operation);
/* The running cell has been sent this answer to a call. */
void split_note(struct session *session, const struct returned_message *returned);
/* Nobody gets it: its cell has ended, or will. The copy may still come. */
void split_refuse(struct session *session, const char *code, const char *why);
/* The same, and the copy is not wanted either. */
void split_abandon(struct session *session);
/* The interpreter says what came of it. Whether the copy is there and wanted: then split_end follows, when the
 * branch is made or cannot be. */
bool split_is_there(struct session *session, const struct frozen_message *frozen);
void split_end(struct session *session);
