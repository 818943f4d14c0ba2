/* What happens to a session, as events. Whatever is done about one is in the table of states above
 * (session/life/table.c); here is what each part of a session may do without it. */
#pragma once

#include "session.h"
#include "waiters.h"

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
	EVENT_FILES,	/* those of the state are back, as far as they can be */
	EVENT_ANSWERED, /* the operation that asked the interpreter is done */
	EVENT_PROCEED,	/* what was waited for has come */
	EVENT_EXPIRED,
	EVENT_END,
	_SESSION_EVENT_N,
};

/* What an event carries; only the members of that event are set. */
struct details {
	union {
		const void *message;
		const struct done_message *done;
		const struct ask_message *ask;
		const struct call_message *call;
		const struct abandon_message *abandon;
		const struct shown *shown; /* DISPLAY */
		const struct told_message *told;
		const struct frozen_message *frozen; /* FROZEN, SPLIT */
		const struct spawned_message *spawned;
	};
	const char *why; /* LOST, EXPIRED, END */
	int status;	 /* EXITED */
	bool oom;
	bool changed; /* ANSWERED: the state is another one */
};

extern const struct details session_nothing;

/* Do what the table says. An empty cell of it is a violation. */
void session_event(struct session *session, enum session_event event, const struct details *details);
/* End it for a reason of our own. @cause: static text for the reply of a running cell. */
void session_end(struct session *session, const char *cause);
/* What something waited for has come: do what waits, if it can be done now. */
void session_proceed(struct session *session);

/* A cell begins: the state that it makes is not saved, even if the one before it is. */
void session_depart(struct session *session);
/* Gather the effects of its interpreter that are not known yet: after a cell, and after a death. */
void session_gather_effects(struct session *session);

/* ---- clock.c ---- */

/* The one deadline of the state it is in, @after microseconds from now; 0 = none. */
void session_deadline(struct session *session, uint64_t after);
/* It has come. */
void session_deadline_now(struct session *session);
/* The timers of its life: while it is idle, and from its beginning on. */
void session_arm_idle(struct session *session);
void session_arm_hard(struct session *session);
/* It ends. */
void session_stop_clocks(struct session *session);
/* The running cell asks or calls, or does so no longer, or somebody has come or gone who answers it: its time
 * stands still, or goes on. */
void session_heed_clock(struct session *session);
/* From now on tell those who watch the running cell about every second that it still runs. */
void session_watch(struct session *session);
/* Tell them now. */
void session_say_alive(struct session *session);
