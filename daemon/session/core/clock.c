/* The clocks of a session. The deadline of its state fires once. Those of its life, idle_ttl and hard_ttl, and the
 * second by which clients that watch a running cell hear that it lives, run beside it. A cell's time stands still
 * while it waits for an answer. */
#include "events.h"

#include "base/memory.h"
#include "blame.h"
#include "part.h"
#include "sessions.h"

#include "proto/causes.h"

/* A message that is there may have to wait for a while: it is not looked for in every round. */
#define LOOK_AGAIN_US 1000
#define ALIVE_US 1000000

/* ---- the deadline of its state ---- */

static bool speaks(const struct peer *peer)
{
	return peer->handled || peer_pending(peer);
}

/* The answer may be there, or behind other messages, so that it is the router that is late. In these states
 * nobody can go on speaking for ever. */
static bool may_be_answered(const struct session *session)
{
	switch (session->state) {
	case SESSION_KILLING:
	case SESSION_SWEEPING:
		return speaks(&session->warden->peer);
	case SESSION_RESTORING:
		/* One that begins in the middle of a cell may go on with that already. */
		return !session->midway && speaks(&session->live->peer);
	case SESSION_ANSWERING:
	case SESSION_FREEZING:
		return speaks(&session->live->peer);
	case SESSION_BUSY:
		return session->freezing && speaks(&session->live->peer);
	case SESSION_STARTING:
	case SESSION_IDLE:
	case SESSION_UNSAVED:
	case SESSION_GRACE:
	case SESSION_CLOSING:
	case _SESSION_STATE_N:
		break;
	}
	return false;
}

static void on_deadline(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, deadline);

	blame_session(session, TURN_DEADLINE);
	if (may_be_answered(session))
		(void)timer_set(session_loop(session), timer, event_now() + LOOK_AGAIN_US, on_deadline);
	else
		session_event(session, EVENT_DEADLINE, &session_nothing);
}

void session_deadline_now(struct session *session)
{
	on_deadline(&session->deadline);
}

void session_deadline(struct session *session, uint64_t after)
{
	session->patience = after;
	if (after)
		(void)timer_set(session_loop(session), &session->deadline, event_now() + after, on_deadline);
	else
		timer_clear(session_loop(session), &session->deadline);
}

void session_stop_clocks(struct session *session)
{
	struct timer *timers[] = {&session->deadline, &session->idle, &session->hard,	 &session->measure,
				  &session->alive,    &session->trim, &session->call_due};

	for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
		timer_clear(session_loop(session), timers[i]);
}

/* ---- its life ---- */

static void expire(struct session *session, const char *cause)
{
	const struct details details = {.why = cause};

	session_event(session, EVENT_EXPIRED, &details);
}

static void on_idle_ttl(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, idle);

	blame_session(session, TURN_IDLE);
	expire(session, "idle_ttl");
}

void session_arm_idle(struct session *session)
{
	if (session->profile->idle_ttl)
		(void)timer_set(session_loop(session), &session->idle, session->last + session->profile->idle_ttl,
				on_idle_ttl);
}

void session_stay(struct session *session)
{
	session->last = event_now();
	warden_touch(session->warden);
	if (cause_is(session->expiring, CAUSE_IDLE_TTL))
		session->expiring = NULL;
	if (session->state == SESSION_IDLE)
		session_arm_idle(session);
}

static void on_hard_ttl(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, hard);

	blame_session(session, TURN_HARD);
	expire(session, "hard_ttl");
}

void session_arm_hard(struct session *session)
{
	if (session->profile->hard_ttl)
		(void)timer_set(session_loop(session), &session->hard, session->opened + session->profile->hard_ttl,
				on_hard_ttl);
}

/* ---- the time of a cell ---- */

void session_heed_clock(struct session *session)
{
	struct cell *cell = session->cell;
	bool stands;

	if (session->state != SESSION_BUSY || session->freezing || !cell->timeout)
		return;
	stands =
		(cell->asking && promise_has(cell->reply.promise, ASKING_INPUT)) ||
		(cell->calls.n > 0 && (calls_wait(&cell->calls) || promise_has(cell->reply.promise, ASKING_CALLS)));
	if (stands == cell->stands)
		return;
	warden_touch(session->warden);
	cell->stands = stands;
	if (stands) {
		cell->stands_since = event_now();
		cell->rest =
			session->deadline.deadline > event_now() ? session->deadline.deadline - event_now() : 1;
		session_deadline(session, 0);
	} else {
		cell->stood += event_now() - cell->stands_since;
		session_deadline(session, cell->rest);
	}
}

/* Since the last look. */
static uint64_t time_stood(struct cell *cell)
{
	uint64_t now = event_now(), still = cell->stood;

	if (cell->stands)
		still += now - cell->stands_since;
	cell->stood = 0;
	cell->stands_since = now;
	return still;
}

/* Members of a family cannot be told apart by their processes. */
static bool works_alone(const struct session *session)
{
	struct session *member;

	list_for_each (member, &session->warden->tenants, tenant.node)
		if (member != session && session_busy(member))
			return false;
	return true;
}

/* Whether it stood still, for a while, since the last look at what the processes of the session do. */
static bool stood(const struct session *session)
{
	const struct cell *cell = session->cell;

	return session->state == SESSION_BUSY && !session->freezing && cell->timeout &&
	       (cell->stands || cell->stood);
}

/* They have used @cpu seconds of processors so far, and the last look was @since ago. A cell that computes while
 * its time stands still, in another thread, does so in its own time. */
static void charge_work(struct session *session, double cpu, uint64_t since)
{
	struct cell *cell = session->cell;
	bool counts = stood(session);
	uint64_t still = time_stood(cell), went_on = since > still ? since - still : 0, worked;

	worked = cell->cpu > 0 && cpu > cell->cpu && works_alone(session) ? (uint64_t)((cpu - cell->cpu) * 1e6) : 0;
	cell->cpu = cpu;
	worked = MIN(worked > went_on ? worked - went_on : 0, still);
	if (worked == 0 || !counts)
		return;
	warden_touch(session->warden);
	if (!cell->stands)
		cell->rest =
			session->deadline.deadline > event_now() ? session->deadline.deadline - event_now() : 0;
	if (cell->rest <= worked) {
		cell->rest = 1;
		session_deadline_now(session);
		return;
	}
	cell->rest -= worked;
	if (!cell->stands)
		session_deadline(session, cell->rest);
}

/* ---- to those who watch ---- */

/* Nobody says when a connection ends. */
static void drop_disconnected_waiters(struct session *session)
{
	struct cell *cell = session->cell;

	if (!cell->asking && cell->calls.n == 0)
		return;
	promise_drop_disconnected(cell->reply.promise);
	session_heed_clock(session);
}

/* What is being done for the cell; NULL: nothing that takes long. */
static const char *doing(const struct session *session)
{
	const char *text = NULL;

	parts_for_each(at, session) text = text || !(*at)->doing ? text : (*at)->doing(session);
	return text;
}

/* Returns the CPU time of its processes. */
static double alive_tell(struct session *session)
{
	const struct usage usage = usage_of_tree(session->warden->pid, session->warden->baseline);
	const struct alive_event alive = {
		.elapsed = event_seconds(event_now() - session->cell->started),
		.memory = usage.memory,
		.cpu = usage.cpu,
		.doing = bytes_of(doing(session)),
	};

	promise_alive(session->cell->reply.promise, &alive);
	return usage.cpu;
}

void session_say_alive(struct session *session)
{
	if (promise_has(session->cell->reply.promise, ASKING_STREAM))
		(void)alive_tell(session);
}

static void on_alive(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, alive);

	blame_session(session, TURN_ALIVE);
	session_watch(session);
	drop_disconnected_waiters(session);
	if (!promise_has(session->cell->reply.promise, ASKING_STREAM) && !stood(session)) {
		session->cell->cpu = 0;
		return;
	}
	charge_work(session, alive_tell(session), ALIVE_US);
}

void session_watch(struct session *session)
{
	(void)timer_set(session->sessions->loop, &session->alive, event_now() + ALIVE_US, on_alive);
}
