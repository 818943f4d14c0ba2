/* Interpreters save side by side, and share the processors and the disk: so not all of them at once. A cell that
 * runs is interrupted first, and what it does then is bounded as for a cell that is late. */
#include "stop.h"

#include "base/log.h"
#include "life.h"
#include "session/parts/saving.h"

#include <inttypes.h>
#include <stdio.h>

#define SAVES_AT_ONCE 4

void stop_init(struct stop *stop)
{
	*stop = (struct stop){.n_saved = 0};
	list_init(&stop->askers);
	msgpack_sbuffer_init(&stop->not_saved);
}

void stop_deinit(struct stop *stop)
{
	waiters_free(&stop->askers);
	msgpack_sbuffer_destroy(&stop->not_saved);
}

bool sessions_stop(struct sessions *sessions)
{
	struct session *session;
	bool busy = false;

	list_for_each (session, &sessions->all, node) {
		if (!session_busy(session))
			continue;
		busy = true;
		if (saving_is_due(session))
			saving_expire(session, "shutdown");
		else
			(void)session_interrupt(session, false);
	}
	return busy;
}

static bool must_save(const struct session *session)
{
	return session->state != SESSION_CLOSING && saving_is_due(session);
}

bool sessions_stop_proceed(struct sessions *sessions)
{
	struct session *session;
	unsigned n = 0;

	list_for_each (session, &sessions->all, node)
		n += session->last_save != NULL;
	list_for_each (session, &sessions->all, node) {
		if (!must_save(session) || session->expiring || n >= SAVES_AT_ONCE)
			continue;
		saving_expire(session, "shutdown");
		n++;
	}
	sessions->stop.n_left = 0;
	list_for_each (session, &sessions->all, node)
		sessions->stop.n_left += must_save(session);
	return sessions->stop.n_left == 0;
}

void stop_note(const struct session *session, const struct ending *ending)
{
	struct stop *stop = &session->sessions->stop;
	const struct refused_name refused = {.name = bytes_of(session->name),
					     .reason = bytes_of(ending->not_saved)};

	if (!session->sessions->cages->stopping)
		return;
	if (ending->saved)
		stop->n_saved++;
	else if (!wire_encode_body(&stop->not_saved, &refused_name_schema, &refused))
		stop->n_not_saved++;
}

static void answer(struct sessions *sessions)
{
	struct stop_reply reply = {.saved = sessions->stop.n_saved};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer not_saved = {0};

	if (!wire_put_array(&not_saved, sessions->stop.n_not_saved) &&
	    !msgpack_sbuffer_write(&not_saved, sessions->stop.not_saved.data, sessions->stop.not_saved.size))
		reply.not_saved = wire_bytes(&not_saved);
	waiters_answer(&sessions->stop.askers, sessions->clients, &stop_reply_schema, &reply);
}

void sessions_stop_end(struct sessions *sessions, const char *why)
{
	struct session *session;

	list_for_each (session, &sessions->all, node) {
		if (!must_save(session))
			continue;
		session->expiring = "shutdown";
		snprintf(session->not_saved, sizeof(session->not_saved), "%s", why);
		log_warn(session->name, "is not saved: %s", why);
	}
	/* When the last session of a family ends, others may end with it. */
	while ((session = sessions_first_open(sessions)))
		session_end(session, "shutdown");
	if (sessions->stop.n_saved + sessions->stop.n_not_saved > 0)
		log_info(NULL, "%" PRIu64 " sessions saved, and %zu not", sessions->stop.n_saved,
			 sessions->stop.n_not_saved);
	answer(sessions);
}

void sessions_stop_ask(struct sessions *sessions, const struct address *from)
{
	waiters_add(&sessions->stop.askers, sessions->clients, from);
}
