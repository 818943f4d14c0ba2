/* Questions about the state, put to the live interpreter between two cells. A question that is not answered in
 * time is treated like a late cell: interrupted, then killed, and the session goes on from its last checkpoint. */
#include "asking.h"

#include "base/log.h"
#include "rows.h"
#include "session/core/sessions.h"

#include "proto/outbuffer.h"

#include <signal.h>

#define QUESTION_US (2 * 1000000ULL)

static struct question *question_under_way(const struct session *session)
{
	return session->operation ? session->operation->question : NULL;
}

void session_ask(struct session *session)
{
	struct question *question = question_under_way(session);
	struct question_message message;

	question->serial = ++session->n_questions;
	message = question_message(question);
	session_deadline(session, QUESTION_US);
	if (interpreter_send(session->live, &question_message_schema, &message))
		session_end(session, "internal");
}

void session_finish_told(struct session *session, const struct details *details)
{
	const struct told_message *told = details->told;
	struct question *question = question_under_way(session);
	struct details answered = {.why = NULL};
	bool done;

	if (!question || told->serial != question->serial ||
	    question_reply(question, session->sessions->clients, &session->operation->request, told, &done)) {
		session_event(session, EVENT_LOST,
			      &(struct details){.why = "it answered a question that nobody asked"});
		return;
	}
	answered.changed = done && question->changes;
	operation_done(session);
	session_event(session, EVENT_ANSWERED, &answered);
}

/* ---- as a part ---- */

/* Interrupted first; the second time the state above kills it. */
static bool on_late(struct session *session)
{
	struct question *question = question_under_way(session);

	if (!question || question->interrupted)
		return false;
	question->interrupted = true;
	interpreter_mark_interrupted(session->live, QUESTION_INTERRUPTED | question->serial);
	if (warden_signal(session->warden, session->live, SIGINT))
		session_end(session, "internal");
	else
		session_deadline(session, MAX(session->profile->grace, (uint64_t)1));
	return true;
}

static void on_exit_of_interpreter(struct session *session)
{
	const struct question *question = question_under_way(session);

	if (!question)
		return;
	client_error(
		session->sessions->clients, &session->operation->request, question->interrupted ? "limit" : "gone",
		question->interrupted
			? "the question was not answered within 2 s: the interpreter of session \"%s\" is replaced"
			: "the interpreter of session \"%s\" ended before it could answer",
		session->id);
	operation_done(session);
}

const struct part asking_part = {.name = "asking", .on_exit = on_exit_of_interpreter, .on_late = on_late};
