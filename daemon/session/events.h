/* Shared by the files of a session: its events, its table, and the steps that its states are made of. */
#pragma once

#include "session.h"

/* How long a warden may take to kill an interpreter, and a fork to introduce itself. */
#define PATIENCE_US (5 * 1000000ULL)
/* How long processes may take to die: a thousand are torn down by processors that others use, too. */
#define DEATH_US (10 * 1000000ULL)

/* The time that an answer needs to reach its client: a fork takes a processor for as long as it lasts. */
#define ANSWER_US 1000
/* A client that comes back sooner than that would have to wait for a checkpoint made in between. */
#define HURRY_US (2 * ANSWER_US)

#define RETURNCODE_TIMEOUT 124
#define RETURNCODE_SIGNAL 128
#define RETURNCODE_INTERRUPTED 130
#define RETURNCODE_KILLED 137

enum session_event {
	EVENT_READY,
	EVENT_RUN,
	EVENT_SIGNALLED,
	EVENT_DONE,
	EVENT_ASK,
	EVENT_CALL,
	EVENT_ABANDON,
	EVENT_DISPLAY,
	EVENT_TOLD,
	EVENT_DEADLINE,
	EVENT_LOST,
	EVENT_CLOSED,
	EVENT_EXITED,
	EVENT_SWEPT,
	EVENT_FROZEN,
	EVENT_SPLIT,
	EVENT_SPAWNED,
	EVENT_RESET,
	EVENT_FULL,
	_SESSION_EVENT_N,
};

/* What an event carries; only the members of that event are set. */
struct details {
	const struct done_message *done;
	const struct ask_message *ask;
	const struct call_message *call;
	const struct abandon_message *abandon;
	const struct shown *shown; /* DISPLAY */
	const struct told_message *told;
	const struct frozen_message *frozen; /* FROZEN, SPLIT */
	const struct spawned_message *spawned;
	const char *why; /* LOST */
	int status;	 /* EXITED */
	bool oom;
};

extern const struct details session_nothing;

/* A request that waits for its session. */
struct waiter {
	struct list node;
	struct address request;
};

/* Do what the table says. An empty cell of it is a violation. */
void session_event(struct session *session, enum session_event event, const struct details *details);

/* ---- steps: messages.c ---- */

/* From now on tell those who watch the running cell about every second that it still runs. */
void session_watch(struct session *session);
/* Tell them now. */
void session_say_alive(struct session *session);

/* ---- steps: steps.c ---- */

struct event_loop *session_loop(const struct session *session);
/* The one deadline of the state it is in, @after microseconds from now; 0 = none. */
void session_deadline(struct session *session, uint64_t after);
/* It has come. */
void session_deadline_now(struct session *session);
/* A cell begins: the state that it makes is not saved, even if the one before it is. */
void session_depart(struct session *session);
void session_answer_waiters(struct session *session, struct list *waiters);
/* @back: with the effects since the session began, which are not undone. */
void session_answer_resets(struct session *session, bool back);
/* It ends, and will not be fresh. */
void session_refuse_resets(struct session *session);
/* Gather the effects of its interpreter that are not known yet: after a cell, and after a death. */
void session_gather_effects(struct session *session);
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
void session_proceed(struct session *session);
/* Kill the interpreter; another one follows when it is dead. */
void session_kill_interpreter(struct session *session, const char *cause);

/* A session without any past. NULL when out of memory. */
struct session *session_alloc(struct sessions *sessions, struct profile *profile, const char *id, uid_t owner);
/* The same as a branch of @parent for @operation, which it owns then; in its warden, and working in @workspace.
 * Returns 0 or -ENOMEM. */
int session_alloc_branch(struct session **sessionp, struct session *parent, struct operation *operation,
			 const char *workspace);
/* Timers, where there are any. */
void session_arm_hard(struct session *session);
/* It is as a former router had it, except for its timers, which are set here. */
void session_on_revived(struct session *session);

/* ---- entries of the table: checkpoint.c ---- */

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

/* ---- entries of the table: split.c ---- */

/* The copy of the running cell is there, or there is none. */
void session_finish_split(struct session *session, const struct details *details);
/* The same when it comes too late. */
void session_drop_split(struct session *session, const struct details *details);

/* ---- entries of the table: restore.c ---- */

void session_replace_after_exit(struct session *session, const struct details *details);
void session_restore_after_sweep(struct session *session, const struct details *details);
/* Its files are those of the state, as far as they can be. */
void session_restore_after_files(struct session *session);
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

/* ---- entries of the table: calls.c ---- */

void session_pass_call(struct session *session, const struct details *details);
void session_pass_abandon(struct session *session, const struct details *details);
/* The timer of those that must have an answer by a certain time. */
void session_arm_calls(struct session *session);
/* It has an error for an answer, and nobody hears of it. */
void session_refuse_call(struct session *session, const struct call_message *message, const char *error,
			 const char *text);
/* Its interpreter or its cell ends: they have no answer. */
void session_end_calls(struct session *session);

/* ---- what calls leave behind: deeds.c ---- */

enum call_end {
	CALL_ANSWERED,
	CALL_ABANDONED, /* nobody in its cell waits any more */
	CALL_CUT_OFF,	/* its cell has ended */
};

/* @error: the name, if that is its answer. */
void session_note_call(struct session *session, const struct call *call, enum call_end end, struct bytes error);

#define REPEAT_TEXT_SIZE 1024

/* Whether a call of an `effect` function was done already, and is not in the past of the present state: 1, and @out
 * says so; 0; or -ENOMEM. */
int session_repeats(char out[static REPEAT_TEXT_SIZE], struct session *session, const struct call_message *message);

/* ---- entries of the table: asking.c ---- */

void session_finish_told(struct session *session, const struct details *details);
void session_hurry_question(struct session *session, const struct details *details);
/* The interpreter that was asked a question is gone. */
void session_fail_question(struct session *session);
