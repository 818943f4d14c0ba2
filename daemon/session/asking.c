/* Questions about the state, put to the live interpreter between two cells. A question that is not answered in
 * time is treated like a late cell: interrupted, then killed, and the session goes on from its last checkpoint. */
#include "events.h"

#include "comparing.h"

#include "base/log.h"
#include "sessions.h"

#include "proto/outbuffer.h"

#include <signal.h>

#define QUESTION_US (2 * 1000000ULL)

static struct question *question_under_way(const struct session *session)
{
	return session->operation->question;
}

void session_ask(struct session *session)
{
	struct question *question = question_under_way(session);
	struct question_message message;

	question->serial = ++session->n_questions;
	message = question_message(question);
	session->state = SESSION_ANSWERING;
	session_deadline(session, QUESTION_US);
	if (interpreter_send(session->live, &question_message_schema, &message))
		session_end(session, "internal");
}

/* What follows an answer. */
static void answered(struct session *session, bool changed)
{
	session->operation = operation_free(session->operation);
	session_deadline(session, 0);
	if (changed)
		session->history.saved = false;
	if (!session->id[0]) {
		session_end(session, "one-shot");
		return;
	}
	session->state = SESSION_IDLE;
	if (changed && session->profile->checkpoint == CHECKPOINT_CELL)
		session_freeze(session);
	else
		session_begin_idle(session);
}

void session_finish_told(struct session *session, const struct details *details)
{
	const struct told_message *told = details->told;
	struct question *question = question_under_way(session);
	bool done;

	if (!question || told->serial != question->serial ||
	    question_reply(question, session->sessions->clients, &session->operation->request, told, &done)) {
		session_on_lost(session, session->live, "it answered a question that nobody asked");
		return;
	}
	answered(session, done && question->changes);
}

void session_hurry_question(struct session *session, const struct details *details)
{
	struct question *question = question_under_way(session);

	(void)details;
	if (!question) {
		comparing_give_up(session);
		return;
	}
	if (question->interrupted) {
		log_info(session->name, "its interpreter did not answer a question: killed");
		session_fail_question(session);
		session_kill_interpreter(session, "timeout");
		return;
	}
	question->interrupted = true;
	interpreter_mark_interrupted(session->live, QUESTION_INTERRUPTED | question->serial);
	if (warden_signal(session->warden, session->live, SIGINT))
		session_end(session, "internal");
	else
		session_deadline(session, MAX(session->profile->grace, (uint64_t)1));
}

void session_fail_question(struct session *session)
{
	const struct question *question = question_under_way(session);

	client_error(
		session->sessions->clients, &session->operation->request, question->interrupted ? "limit" : "gone",
		question->interrupted
			? "the question was not answered within 2 s: the interpreter of session \"%s\" is replaced"
			: "the interpreter of session \"%s\" ended before it could answer",
		session->id);
	session->operation = operation_free(session->operation);
}
