/* Sessions as things. */
#include "blame.h"

#include "base/log.h"
#include "events.h"
#include "warden/cages.h"

void blame_session(const struct session *session, enum blame_turn turn)
{
	const struct thing thing = {.kind = BLAME_SESSION,
				    .turn = turn,
				    .whose = session->warden->family,
				    .number = session->tenant.number};

	blame_note(session->warden->cages->breaker, &thing, "session", bytes_of(session->id));
}

static bool session_is_open(const struct session *session)
{
	const struct breaker *breaker = session->warden->cages->breaker;
	const struct interpreter *interpreter;
	uint64_t family = session->warden->family;

	list_for_each (interpreter, (struct list *)&session->warden->interpreters, node)
		if (interpreter->tenant == &session->tenant &&
		    breaker_is_open_for(breaker, BLAME_INTERPRETER, family, interpreter->serial))
			return true;
	return breaker_is_open_for(breaker, BLAME_SESSION, family, session->tenant.number);
}

/* Its unread messages are the ones that must not be read. */
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
		if (interpreter->tenant == &session->tenant)
			interpreter_ignore(interpreter);
	session_end(session, "internal");
}

void blame_end_open(struct warden *warden)
{
	struct session *session;

	list_for_each (session, &warden->tenants, tenant.node)
		if (session_is_open(session))
			session_give_up(session);
}
