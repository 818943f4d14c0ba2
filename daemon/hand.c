/* What is noted is numbers, which stay the same from one router to the next. */
#include "hand.h"

#include "fault.h"
#include "log.h"
#include "nursery.h"
#include "router.h"
#include "session.h"

#include <stdio.h>

static const char *const turn_names[_TURN_N] = {
	[TURN_CHANNEL] = "channel",   [TURN_STDOUT] = "stdout",	    [TURN_STDERR] = "stderr",
	[TURN_DEATH] = "death",	      [TURN_DEADLINE] = "deadline", [TURN_IDLE] = "idle",
	[TURN_HARD] = "hard",	      [TURN_ALIVE] = "alive",	    [TURN_MEASURE] = "measure",
	[TURN_TRANSFER] = "transfer", [TURN_COPY] = "copy",	    [TURN_PATIENCE] = "patience",
	[TURN_QUOTA] = "quota",	      [TURN_REFILL] = "refill",	    [TURN_RETRY] = "retry",
	[TURN_READ] = "read",	      [TURN_REVIVE] = "revive",
};

/* ---- what is in hand ---- */

void hand_session(const struct session *session, enum hand_turn turn)
{
	const struct thing thing = {
		.kind = HAND_SESSION, .turn = turn, .whose = session->warden->family, .number = session->number};

	breaker_name(&session->router->breaker, &thing);
	fault_at("session", turn_names[turn], bytes_of(session->id));
}

void hand_interpreter(const struct interpreter *interpreter, enum hand_turn turn)
{
	const struct thing thing = {.kind = HAND_INTERPRETER,
				    .turn = turn,
				    .whose = interpreter->family,
				    .number = interpreter->serial};

	breaker_name(&interpreter->session->router->breaker, &thing);
	fault_at("interpreter", turn_names[turn], bytes_of(interpreter->session->id));
}

void hand_warden(const struct warden *warden, enum hand_turn turn)
{
	const struct thing thing = {.kind = HAND_FAMILY, .turn = turn, .whose = warden->family};

	breaker_name(&warden->router->breaker, &thing);
	fault_at("family", turn_names[turn], warden_session(warden));
}

static struct thing thing_of_nursery(const struct nursery *nursery, uint32_t turn)
{
	return (struct thing){.kind = HAND_TEMPLATE,
			      .turn = turn,
			      .whose = breaker_digest(BREAKER_DIGEST, bytes_of(nursery->profile->name)),
			      .number = nursery->owned ? nursery->owner + 1ULL : 0};
}

void hand_nursery(const struct nursery *nursery, enum hand_turn turn)
{
	const struct thing thing = thing_of_nursery(nursery, turn);

	breaker_name(&nursery->router->breaker, &thing);
	fault_at("template", turn_names[turn], bytes_of(nursery->profile->name));
}

/* Each template begins anew, so that its first message is handled says nothing of its second. */
void hand_nursery_message(const struct nursery *nursery, size_t type)
{
	const struct thing thing = thing_of_nursery(nursery, _TURN_N + (uint32_t)type);

	breaker_name(&nursery->router->breaker, &thing);
}

void hand_revival(struct router *router, uint64_t family, enum hand_turn turn)
{
	const struct thing thing = {.kind = HAND_REVIVAL, .turn = turn, .whose = family};

	breaker_name(&router->breaker, &thing);
}

bool hand_frame(struct router *router, uint64_t uid, size_t size)
{
	const struct thing thing = {.kind = HAND_FRAME, .whose = uid, .number = size};

	breaker_take(&router->breaker);
	breaker_name(&router->breaker, &thing);
	return breaker_is_open(&router->breaker, &thing);
}

bool hand_request(struct router *router, uint64_t uid, const struct wire_schema *schema, struct bytes session,
		  struct bytes key)
{
	uint64_t digest = breaker_digest(BREAKER_DIGEST, bytes_of(schema->type));
	struct thing thing = {.kind = HAND_REQUEST, .whose = uid};

	thing.number = breaker_digest(breaker_digest(digest, session), key);
	breaker_name(&router->breaker, &thing);
	if (breaker_is_open(&router->breaker, &thing))
		return true;
	fault_at("request", schema->type, session);
	return false;
}

/* ---- what came of it ---- */

bool hand_revival_is_open(const struct router *router, uint64_t family)
{
	return breaker_is_open_for(&router->breaker, HAND_REVIVAL, family, 0) ||
	       breaker_is_open_for(&router->breaker, HAND_FAMILY, family, 0);
}

bool hand_nursery_is_open(const struct nursery *nursery)
{
	const struct thing thing = thing_of_nursery(nursery, TURN_CHANNEL);

	return breaker_is_open_for(&nursery->router->breaker, HAND_TEMPLATE, thing.whose, thing.number);
}

static bool session_is_open(const struct session *session)
{
	const struct breaker *breaker = &session->router->breaker;
	const struct interpreter *interpreter;
	uint64_t family = session->warden->family;

	list_for_each (interpreter, (struct list *)&session->warden->interpreters, node)
		if (interpreter->session == session &&
		    breaker_is_open_for(breaker, HAND_INTERPRETER, family, interpreter->serial))
			return true;
	return breaker_is_open_for(breaker, HAND_SESSION, family, session->number);
}

/* What is left to be heard of it is what must not be heard. */
static void session_give_up(struct session *session)
{
	struct interpreter *interpreter;

	static const char note[] = "laird's router died of this session again and again: it is ended\n";

	if (session->state == SESSION_CLOSING)
		return;
	log_error(session->id, "routers died of it again and again: it is ended, so that the others go on");
	if (session->cell)
		session_on_words(session, STREAM_STDERR, BYTES(note));
	list_for_each (interpreter, &session->warden->interpreters, node)
		if (interpreter->session == session)
			interpreter_ignore(interpreter);
	session_end(session, "internal");
}

void hand_end_open(struct warden *warden)
{
	struct session *session;

	list_for_each (session, &warden->sessions, kin)
		if (session_is_open(session))
			session_give_up(session);
}

/* ---- for tests ---- */

const char *hand_point(size_t i)
{
	static const char *const points[] = {
		"interpreter.channel", "interpreter.stdout", "interpreter.stderr", "session.deadline",
		"session.idle",	       "session.hard",	     "session.alive",	   "session.measure",
		"session.transfer",    "session.copy",	     "family.channel",	   "family.death",
		"family.patience",     "family.quota",	     "template.channel",   "template.patience",
		"template.refill",     "template.retry",     "template.idle",
	};

	return i < ARRAY_SIZE(points) ? points[i] : NULL;
}
