/* What the files of a session share: its events, its table, and the steps its states are made of. */
#pragma once

#include "session.h"

/* How long a warden may take to kill an interpreter, and a fork to introduce itself. */
#define PATIENCE_US (5 * 1000000ULL)

/* For an answer to reach who waits for it: a fork takes a processor for as long as it lasts. */
#define ANSWER_US 1000
/* Who comes back sooner than that would have had to wait for a checkpoint that is taken then. */
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
	EVENT_DISPLAY,
	EVENT_TOLD,
	EVENT_DEADLINE,
	EVENT_LOST,
	EVENT_CLOSED,
	EVENT_EXITED,
	EVENT_SWEPT,
	EVENT_FROZEN,
	EVENT_SPAWNED,
	EVENT_RESET,
	EVENT_FULL,
	_SESSION_EVENT_N,
};

/* What an event carries; only the members of that event are set. */
struct particulars {
	const struct done_message *done;
	const struct ask_message *ask;
	const struct shown *shown; /* DISPLAY */
	const struct told_message *told;
	const struct frozen_message *frozen;
	const struct spawned_message *spawned;
	const char *why; /* LOST */
	int status;	 /* EXITED */
	bool oom;
};

extern const struct particulars session_nothing;

/* A request that waits for its session. */
struct waiter {
	struct list node;
	struct address request;
};

/* Do what the table says. An empty cell of it is a violation. */
void session_event(struct session *session, enum session_event event, const struct particulars *particulars);

/* ---- steps: messages.c ---- */

/* From now on those who watch the running cell are told about every second that it still runs. */
void session_watch(struct session *session);

/* ---- steps: steps.c ---- */

struct event_loop *session_loop(const struct session *session);
/* The one deadline of the state it is in, @after microseconds from now; 0 = none. */
void session_deadline(struct session *session, uint64_t after);
/* A cell begins: what it makes of the state is not saved, whether or not that is. */
void session_depart(struct session *session);
void session_answer_waiters(struct session *session, struct list *waiters);
/* @back: with what cannot be undone of what was done since the session began. */
void session_answer_resets(struct session *session, bool back);
/* It ends, and will not be fresh. */
void session_refuse_resets(struct session *session);
/* What its interpreter has done beyond its memory, as far as it is not known yet: after a cell, and after a death.
 */
void session_gather_effects(struct session *session);
/* Answer a cell, whatever it is. */
void session_reply(struct session *session, struct cell *cell, const struct verdict *verdict);
/* What a cell ended of whose time was over. */
const char *session_overdue(const struct session *session);
/* Answer the running cell and forget it. */
void session_finish_cell(struct session *session, const struct verdict *verdict);
/* Whatever waits, cells and operations, will not be done. */
void session_refuse_work(struct session *session, const char *why);
/* Idle from now on, unless something waits. */
void session_begin_idle(struct session *session);
/* The same, but a checkpoint is taken when the answer that has just been given is where it belongs, or before
 * whatever comes next; at once if that will come soon. */
void session_freeze_soon(struct session *session);
void session_proceed(struct session *session);
/* Kill the interpreter; another one follows when it is gone. */
void session_kill_interpreter(struct session *session, const char *cause);

/* One that nothing has happened to yet. NULL when out of memory. */
struct session *session_alloc(struct sessions *sessions, struct profile *profile, const char *id, uid_t owner);
/* Timers, where there are any. */
void session_arm_hard(struct session *session);
/* It is as a former router had it: but for its timers. */
void session_on_revived(struct session *session);

/* ---- entries of the table: checkpoint.c ---- */

void session_finish_frozen(struct session *session, const struct particulars *particulars);
/* The same when a cell waited for it in the interpreter, or when that is being killed. */
void session_note_frozen(struct session *session, const struct particulars *particulars);
/* No copy comes of it. */
void session_abandon_freeze(struct session *session, const char *why);
/* Forget checkpoints until what is left is within the limits. */
void session_trim_history(struct session *session);
/* Its timer, where there are any. */
void session_arm_measure(struct session *session);

/* ---- entries of the table: restore.c ---- */

void session_replace_after_exit(struct session *session, const struct particulars *particulars);
void session_restore_after_sweep(struct session *session, const struct particulars *particulars);
void session_restore_older(struct session *session, const struct particulars *particulars);
void session_adopt_restored(struct session *session, const struct particulars *particulars);
/* Its cell has not begun: it waits again, for another interpreter. */
void session_put_back(struct session *session);
/* Fork @frozen for this session, which is RESTORING until that stands. */
void session_thaw(struct session *session, const struct spawn_message *how, struct interpreter *frozen);
/* Nothing of it grows from its source any more. */
void session_let_source_go(struct session *session);
/* Kill the interpreter and make the one who is to follow at once, of @target; NULL: of the pristine image. */
void session_replace(struct session *session, struct checkpoint *target, const char *cause);
/* Nobody follows yet: one is made when the old interpreter is dead. */
void session_drop_successor(struct session *session);
/* The same because the checkpoint does not answer, which is forgotten for it. */
void session_give_up_successor(struct session *session);

/* ---- entries of the table: asking.c ---- */

void session_finish_told(struct session *session, const struct particulars *particulars);
void session_hurry_question(struct session *session, const struct particulars *particulars);
/* The interpreter that was asked a question is gone. */
void session_fail_question(struct session *session);
