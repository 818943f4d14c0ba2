/* The steps that the table of states is made of. */
#pragma once

#include "life.h"
#include "session/core/events.h"

/* @back: with the effects since the session began, which are not undone. */
void session_answer_resets(struct session *session, bool back);
/* It ends, and will not be fresh. */
void session_refuse_resets(struct session *session);
/* Its time is over. */
void session_expire(struct session *session, const struct details *details);
/* Answer a cell, whatever it is. */
void session_reply(struct session *session, struct cell *cell, const struct verdict *verdict);
/* The cause for a cell whose time was over. */
const char *session_overdue(const struct session *session);
/* Answer the running cell and forget it. */
void session_finish_cell(struct session *session, const struct verdict *verdict);
/* Refuse everything that waits, cells and operations. */
void session_refuse_work(struct session *session, const char *why);
/* Idle from now on, unless something waits. */
void session_begin_idle(struct session *session);
/* The same, but a checkpoint is taken when the answer that has just been given is where it belongs, or before
 * whatever comes next; at once if that will come soon. One that would cost much waits for its time, and whatever
 * comes next does not wait for it. */
void session_freeze_soon(struct session *session);
/* Do what waits for an idle session: first operations, then cells. */
void session_work(struct session *session, const struct details *details);
/* Kill the interpreter; another one follows when it is dead. */
void session_kill_interpreter(struct session *session, const char *cause);

/* ---- checkpoint.c ---- */

/* Take a checkpoint now (IDLE, UNSAVED). FROZEN or a failure comes back to operation_on_frozen. */
void session_freeze(struct session *session);
void session_forget(struct session *session, struct checkpoint *checkpoint);

void session_finish_frozen(struct session *session, const struct details *details);
/* The same when a cell waited for it in the interpreter, or when the interpreter is being killed. */
void session_note_frozen(struct session *session, const struct details *details);
/* How much the cell that has ended had to copy. */
void session_note_rewriting(struct session *session, const struct done_message *done);
/* Why the state after a cell will hardly be kept, as far as is known; NULL: nothing is in the way. */
#define UNKEPT_SIZE 224
const char *session_unkept(char text[static UNKEPT_SIZE], const struct session *session);
/* No copy comes of it. */
void session_abandon_freeze(struct session *session, const char *why);
/* Forget checkpoints until the rest is within the limits. */
void session_trim_history(struct session *session);
/* Its timer, where there are any. */
void session_arm_measure(struct session *session);

/* ---- restore.c ---- */

/* Give up the live state for @target (IDLE). operation_on_restored is called when that stands. */
void session_rewind(struct session *session, struct checkpoint *target);
/* The one who is to follow it lives, with that number; 0: there is none. */
void session_on_successor(struct session *session, uint64_t pid);

void session_replace_after_exit(struct session *session, const struct details *details);
void session_restore_after_sweep(struct session *session, const struct details *details);
/* Its files are those of the state, as far as they can be. */
void session_restore_after_files(struct session *session, const struct details *details);
void session_restore_older(struct session *session, const struct details *details);
/* The frozen interpreter answers, but could not fork. */
void session_on_unforked(struct session *session, const struct details *details);
void session_adopt_restored(struct session *session, const struct details *details);
/* Its cell has not begun: it waits again, for another interpreter. */
void session_put_back(struct session *session);
/* Fork @frozen for this session, which is RESTORING until the fork is ready. */
void session_thaw(struct session *session, const struct spawn_message *how, struct interpreter *frozen);
/* The session is no longer being forked from its source. */
void session_let_source_go(struct session *session);
/* Kill the interpreter and at once make its successor, a fork of @target; NULL: of the pristine image. */
void session_replace(struct session *session, struct checkpoint *target, const char *cause);
/* There is no successor yet: one is made when the old interpreter is dead. */
void session_drop_successor(struct session *session);
/* The same because the checkpoint does not answer; it is forgotten. */
void session_give_up_successor(struct session *session);

/* ---- branch.c ---- */

/* Grow a new session from a checkpoint of @parent for @operation, which is answered here or when the branch stands.
 */
void session_branch(struct session *parent, struct checkpoint *from, struct operation *operation);
/* The copy of the running cell is there, or there is none. */
void session_finish_split(struct session *session, const struct details *details);
/* The same when it comes too late. */
void session_drop_split(struct session *session, const struct details *details);
/* The interpreter of a branch in the middle of a cell lives: it goes on with the cell. */
void session_begin_split(struct session *session);

/* ---- operations.c ---- */

/* The session is idle: do the operation, or its first step. */
void operation_begin(struct session *session, struct operation *operation);
/* The state is saved (@why NULL), or could not be: go on with session->operation. */
void operation_on_frozen(struct session *session, const char *why);
void operation_on_restored(struct session *session);
/* The branch that it asked for lives. */
void operation_on_born(struct session *session);

/* ---- messages.c ---- */

/* It broke the protocol, or (@why NULL) closed its channel. */
void session_on_lost(struct session *session, struct interpreter *interpreter, const char *why);

/* ---- life.c ---- */

void session_finish(struct session *session, const struct details *details);
