#include "fakes/states.h"

#include <signal.h>

static void done(struct stage *stage, struct session *session)
{
	const struct done_message message = {.cell = session->cell->number};

	fake_say(session->live, &done_message_schema, &message);
	stage_settle(stage);
}

static struct session *idle(struct stage *stage)
{
	return stage_open(stage, "s");
}

static struct session *starting(struct stage *stage)
{
	struct session *session;

	fake_spare = false;
	session = idle(stage);
	fake_spare = true;
	return session;
}

static struct session *busy(struct stage *stage)
{
	struct session *session = idle(stage);

	stage_exec(stage, session, true, 1000000);
	return session;
}

static struct session *grace(struct stage *stage)
{
	struct session *session = busy(stage);

	stage_wait(stage, 1000000);
	return session;
}

static struct session *answering(struct stage *stage)
{
	struct session *session = idle(stage);

	stage_operate(stage, session, OPERATION_QUESTION, NULL, NULL, 0);
	return session;
}

static struct session *unsaved(struct stage *stage)
{
	struct session *session = busy(stage);

	done(stage, session);
	return session;
}

static struct session *freezing(struct stage *stage)
{
	struct session *session = unsaved(stage);

	stage_wait(stage, 1000);
	return session;
}

static struct session *killing(struct stage *stage)
{
	struct session *session = busy(stage);

	(void)session_interrupt(session, true);
	return session;
}

static struct session *sweeping(struct stage *stage)
{
	struct session *session = killing(stage);

	fake_exited(session->warden, session->live->serial, SIGKILL, false);
	return session;
}

static struct session *restoring(struct stage *stage)
{
	struct session *session = freezing(stage);
	const struct frozen_message frozen = {.serial = session->freezing->serial, .pid = 2};

	fake_say(session->live, &frozen_message_schema, &frozen);
	stage_exec(stage, session, false, 1000000);
	(void)session_interrupt(session, true);
	fake_exited(session->warden, session->live->serial, SIGKILL, false);
	fake_swept(session->warden);
	return session;
}

/* With a branch that goes on, so that it is not its warden's end. */
static struct session *closing(struct stage *stage)
{
	struct session *session = freezing(stage);
	const struct frozen_message frozen = {.serial = session->freezing->serial, .pid = 2};

	fake_say(session->live, &frozen_message_schema, &frozen);
	stage_operate(stage, session, OPERATION_BRANCH, NULL, "branch", 0);
	stage_close(stage, session);
	return session;
}

static const struct {
	const char *name;
	struct session *(*enter)(struct stage *stage);
} states[_SESSION_STATE_N] = {
	[SESSION_STARTING] = {"starting", starting},
	[SESSION_IDLE] = {"idle", idle},
	[SESSION_BUSY] = {"busy", busy},
	[SESSION_GRACE] = {"grace", grace},
	[SESSION_ANSWERING] = {"answering", answering},
	[SESSION_UNSAVED] = {"unsaved", unsaved},
	[SESSION_FREEZING] = {"freezing", freezing},
	[SESSION_KILLING] = {"killing", killing},
	[SESSION_SWEEPING] = {"sweeping", sweeping},
	[SESSION_RESTORING] = {"restoring", restoring},
	[SESSION_CLOSING] = {"closing", closing},
};

const char *state_name(enum session_state state)
{
	return states[state].name;
}

struct session *state_enter(struct stage *stage, enum session_state state)
{
	return states[state].enter(stage);
}
