/* Calls of functions that the client offers, from the running cell to who answers them and back. The cell's time
 * stands still while one is out and somebody answers calls, and while one asks or is held. */
#include "events.h"

#include "audit_log.h"
#include "sessions.h"

#include <stdio.h>

/* The interpreter gets an answer, whichever it is. */
static void interpreter_return(struct session *session, const struct returned_message *returned)
{
	if (interpreter_send(session->live, &returned_message_schema, returned))
		session_end(session, "internal");
}

static void refuse(struct session *session, uint64_t number, const char *error, const char *text)
{
	interpreter_return(session, &(struct returned_message){
					    .number = number, .error = bytes_of(error), .text = bytes_of(text)});
}

void session_heed_calls(struct session *session)
{
	struct cell *cell = session->cell;
	bool stands = cell->calls.n > 0 && (calls_wait(&cell->calls) || promise_answers_calls(cell->reply.promise));

	if (session->state != SESSION_BUSY || session->freezing || !cell->timeout || stands == cell->stands)
		return;
	warden_touch(session->warden);
	cell->stands = stands;
	if (stands) {
		cell->rest =
			session->deadline.deadline > event_now() ? session->deadline.deadline - event_now() : 1;
		session_deadline(session, 0);
	} else {
		session_deadline(session, cell->rest);
	}
}

void session_pass_call(struct session *session, const struct details *details)
{
	const struct call_message *message = details->call;
	struct cell *cell = session->cell;
	struct call *call;
	int r;

	interpreter_drain(session->live);
	if (!functions_have(cell->options.functions, message->function)) {
		refuse(session, message->number, "FunctionError",
		       "the client of this cell does not offer that function");
		return;
	}
	r = calls_add(&call, &cell->calls, message);
	if (r == -EEXIST)
		return; /* sent again after a router's death */
	if (r) {
		refuse(session, message->number, "FunctionError",
		       r == -EMFILE ? "too many calls are out at once: wait for some"
				    : "the session's user holds too much already: wait for some calls");
		return;
	}
	promise_call(cell->reply.promise, call);
	session_heed_calls(session);
}

void session_pass_abandon(struct session *session, const struct details *details)
{
	struct call *call = calls_find(&session->cell->calls, details->abandon->number);

	if (!call)
		return;
	audit_log_call(session, call, "abandoned");
	promise_cancel(session->cell->reply.promise, call->number);
	calls_remove(&session->cell->calls, call);
	session_heed_calls(session);
}

static void outcome_write(char out[static 128], const struct returned_message *answer)
{
	if (answer->error.data)
		snprintf(out, 128, "error %.*s", (int)MIN(answer->error.size, (size_t)100), answer->error.data);
	else
		snprintf(out, 128, "a value of %zu bytes", answer->value.size);
}

void session_answer_call(struct session *session, struct call *call, const struct returned_message *answer)
{
	struct returned_message returned = *answer;
	char outcome[128];

	returned.number = call->number;
	outcome_write(outcome, answer);
	audit_log_call(session, call, outcome);
	warden_touch(session->warden);
	calls_remove(&session->cell->calls, call);
	session_heed_calls(session);
	interpreter_return(session, &returned);
}

void session_hold_call(struct session *session, struct call *call, struct bytes why)
{
	warden_touch(session->warden);
	call_turn(call, CALL_HELD, why);
	session_heed_calls(session);
}

void session_end_calls(struct session *session)
{
	struct call *call;

	list_for_each (call, &session->cell->calls.list, node)
		audit_log_call(session, call, "none: its cell has ended");
}
