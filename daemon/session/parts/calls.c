/* Calls of functions that the client offers, from the running cell to who answers them and back. The cell's time
 * stands still while one is out and somebody answers calls, and while one asks or is held. */
#include "calls.h"

#include "config/policy.h"
#include "installing.h"
#include "promise/call_text.h"
#include "rows.h"
#include "session/core/audit_log.h"
#include "session/core/blame.h"
#include "session/core/sessions.h"
#include "split.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* The interpreter gets an answer, whichever it is. */
static void interpreter_return(struct session *session, const struct returned_message *returned)
{
	split_note(session, returned);
	if (interpreter_send(session->live, &returned_message_schema, returned))
		session_end(session, "internal");
}

/* Of the arguments of a function with an effect: the router computes a digest of them, and others wait for that. */
#define EFFECT_SIZE_MAX (256 * 1024)

static void on_call_due(struct timer *timer);

static void arm(struct session *session)
{
	uint64_t first = 0;
	struct call *call;

	list_for_each (call, &session->cell->calls.list, node) {
		uint64_t due = call_due(call, session->profile->hold_timeout);

		if (due && (!first || due < first))
			first = due;
	}
	if (first)
		(void)timer_set(session_loop(session), &session->call_due, first, on_call_due);
	else
		timer_clear(session_loop(session), &session->call_due);
}

void session_heed_calls(struct session *session)
{
	watches_note(session);
	warden_touch(session->warden);
	arm(session);
	session_heed_clock(session);
}

/* ---- from the cell ---- */

static void refuse(struct session *session, const struct call_message *message, const char *error,
		   const char *format, ...) _printf_(4, 5);

static void refuse(struct session *session, const struct call_message *message, const char *error,
		   const char *format, ...)
{
	const struct call call = {.number = message->number, .function = message->function, .since = event_now()};
	char text[REPEAT_TEXT_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* A line each, or hostile code could fill the log. */
	if (session->cell->n_calls <= session->profile->calls)
		audit_log_call(session, &call, "refused");
	interpreter_return(session, &(struct returned_message){.number = message->number,
							       .error = bytes_of(error),
							       .text = bytes_of(text)});
}

void session_refuse_call(struct session *session, const struct call_message *message, const char *error,
			 const char *text)
{
	refuse(session, message, error, "%s", text);
}

/* Whether the profile has no room for it, and the cell has been told so. */
static bool is_too_much(struct session *session, const struct call_message *message, bool effect)
{
	const struct profile *profile = session->profile;
	const struct cell *cell = session->cell;

	if (cell->n_calls > profile->calls)
		refuse(session, message, "FunctionError",
		       "calls = %" PRIu64 " is the limit of one cell, and it has made so many: go on in another",
		       profile->calls);
	else if (cell->calls.n >= profile->calls_at_once)
		refuse(session, message, "FunctionError",
		       "%zu calls are out, and calls_at_once = %" PRIu64 " is the limit: wait for some",
		       cell->calls.n, profile->calls_at_once);
	else if (message->arguments.size > profile->call_size)
		refuse(session, message, "FunctionError",
		       "the arguments have %zu bytes, and call_size = %" PRIu64 " is the limit: pass less",
		       message->arguments.size, profile->call_size);
	else if (effect && message->arguments.size > EFFECT_SIZE_MAX)
		refuse(session, message, "FunctionError",
		       "the arguments have %zu bytes, and a function with an effect takes %d: pass less",
		       message->arguments.size, EFFECT_SIZE_MAX);
	else
		return false;
	return true;
}

/* NULL, or why somebody has to approve it. */
static const char *why_ask(const struct function *function, enum function_ruling ruling)
{
	if (ruling == FUNCTION_ASKED_FOR)
		return "the profile wants each call of it approved";
	if (function->ask)
		return "who offers it wants each call of it approved";
	if (function->caution && ruling != FUNCTION_NAMED)
		return "who offers it wants care with it";
	return NULL;
}

/* Put it, or ask whether it may be put. */
static void call_begin(struct session *session, struct call *call, const struct function *function,
		       enum function_ruling ruling)
{
	const char *why = why_ask(function, ruling);

	call->timeout = session->profile->call_timeout;
	if (function->timeout > 0)
		call->timeout =
			function->timeout < 1e12 ? MAX((uint64_t)(function->timeout * 1e6), (uint64_t)1) : 0;
	if (why)
		call_turn(&session->cell->calls, call, CALL_ASKS, bytes_of(why));
	promise_call(session->cell->reply.promise, call);
	session_heed_calls(session);
}

/* What cannot be looked up is not repeated either. */
static bool refuse_repetition(struct session *session, const struct call_message *message)
{
	char text[REPEAT_TEXT_SIZE] = "out of memory to look whether it was done";

	if (!session_repeats(text, session, message))
		return false;
	refuse(session, message, "RepeatError", "%s", text);
	return true;
}

void session_pass_call(struct session *session, const struct details *details)
{
	const struct call_message *message = details->call;
	struct cell *cell = session->cell;
	const struct function *function;
	enum function_ruling ruling;
	struct call *call;
	int r;

	interpreter_drain(session->live);
	/* Sent again after a router's death; or else somebody who approves of a call would approve of another one.
	 */
	if (message->number <= cell->n_calls)
		return;
	cell->n_calls = message->number;
	if (bytes_is(message->function, CALL_INSTALL)) {
		if (!is_too_much(session, message, false))
			session_install(session, message);
		return;
	}
	function = calls_function(&cell->calls, cell->options.functions, message->function);
	if (!function) {
		refuse(session, message, "FunctionError", "the client of this cell does not offer that function");
		return;
	}
	ruling = profile_ruling(session->profile, message->function);
	if (ruling == FUNCTION_DENIED) {
		refuse(session, message, "PermissionError", "%.*s: the operator does not allow it",
		       (int)message->function.size, message->function.data);
		return;
	}
	if (!call_arguments_plain(message->arguments)) {
		refuse(session, message, "TypeError",
		       "%.*s: the names of arguments are text, keys of dicts are text or int, and each is there "
		       "once",
		       (int)message->function.size, message->function.data);
		return;
	}
	if (is_too_much(session, message, function->effect) ||
	    (function->effect && refuse_repetition(session, message)))
		return;
	r = calls_add(&call, &cell->calls, message);
	if (r)
		refuse(session, message, "FunctionError",
		       "the session's user holds too much already: wait for some calls");
	else
		call_begin(session, call, function, ruling);
}

void session_pass_abandon(struct session *session, const struct details *details)
{
	struct call *call = calls_find(&session->cell->calls, details->abandon->number);

	if (!call)
		return;
	audit_log_call(session, call, "abandoned");
	session_note_call(session, call, CALL_ABANDONED, (struct bytes){.data = NULL});
	promise_cancel(session->cell->reply.promise, call->number, NULL);
	calls_remove(&session->cell->calls, call);
	session_heed_calls(session);
}

/* ---- back to it ---- */

/* Without a word to those who have it. @by: who has answered; NULL: its provider. */
static void call_end(struct session *session, struct call *call, const struct returned_message *answer,
		     const uid_t *by)
{
	struct returned_message returned = *answer;

	returned.number = call->number;
	audit_log_answer(session, call, answer, by);
	session_note_call(session, call, CALL_ANSWERED, answer->error);
	calls_remove(&session->cell->calls, call);
	session_heed_calls(session);
	/* If it has been killed, another one will not know of the call. */
	if (session_busy(session))
		interpreter_return(session, &returned);
}

bool session_return_call(struct session *session, struct call *call, const struct returned_message *answer,
			 const struct address *by)
{
	uint64_t limit = session->profile->call_size;
	size_t size = answer->value.size + answer->error.size + answer->text.size;
	char text[160];

	promise_cancel(session->cell->reply.promise, call->number, by);
	if (size <= limit) {
		call_end(session, call, answer, NULL);
		return true;
	}
	snprintf(text, sizeof(text),
		 "the answer has %zu bytes, and call_size = %" PRIu64 " is the limit: ask for less", size, limit);
	call_end(session, call, &(struct returned_message){.error = BYTES("FunctionError"), .text = bytes_of(text)},
		 NULL);
	return false;
}

void session_answer_call(struct session *session, struct call *call, const struct returned_message *answer,
			 uid_t by)
{
	promise_cancel(session->cell->reply.promise, call->number, NULL);
	call_end(session, call, answer, &by);
}

void session_hold_call(struct session *session, struct call *call, struct bytes why, const struct address *by)
{
	promise_cancel(session->cell->reply.promise, call->number, by);
	call_turn(&session->cell->calls, call, CALL_HELD, why);
	session_heed_calls(session);
}

void session_approve_call(struct session *session, struct call *call, uid_t by)
{
	audit_log_approval(session, call, by);
	if (call_is_install(call)) {
		session_install_approved(session, call);
		return;
	}
	call_turn(&session->cell->calls, call, CALL_OUT, BYTES(""));
	promise_call(session->cell->reply.promise, call);
	session_heed_calls(session);
}

/* ---- too late ---- */

static void expire(struct session *session, struct call *call)
{
	const struct profile *profile = session->profile;
	bool own = call->timeout != profile->call_timeout;
	struct returned_message late = {.error = BYTES("TimeoutError")};
	int name = (int)call->function.size;
	char text[REPEAT_TEXT_SIZE];

	if (call->state == CALL_OUT)
		snprintf(text, sizeof(text), "%.*s: no answer within %s%g s", name, call->function.data,
			 own ? "its own limit of " : "call_timeout = ", event_seconds(call->timeout));
	else
		snprintf(text, sizeof(text), "%.*s: nobody has %s it within hold_timeout = %g s", name,
			 call->function.data, call->state == CALL_ASKS ? "approved" : "answered",
			 event_seconds(profile->hold_timeout));
	late.text = bytes_of(text);
	promise_cancel(session->cell->reply.promise, call->number, NULL);
	call_end(session, call, &late, NULL);
}

static struct call *first_due(const struct session *session)
{
	struct call *call;

	list_for_each (call, &session->cell->calls.list, node) {
		uint64_t due = call_due(call, session->profile->hold_timeout);

		if (due && due <= event_now())
			return call;
	}
	return NULL;
}

/* The session may end of an answer that cannot be sent. */
static void on_call_due(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, call_due);
	struct call *call;

	blame_session(session, TURN_CALL);
	while (session->cell && session_busy(session) && (call = first_due(session)))
		expire(session, call);
	if (session->cell && session_busy(session))
		arm(session);
}

void session_end_calls(struct session *session)
{
	struct call *call;

	timer_clear(session_loop(session), &session->call_due);
	if (session->cell->calls.n > 0)
		watches_note(session);
	list_for_each (call, &session->cell->calls.list, node) {
		audit_log_call(session, call, "its cell has ended");
		session_note_call(session, call, CALL_CUT_OFF, (struct bytes){.data = NULL});
		promise_cancel(session->cell->reply.promise, call->number, NULL);
		calls_remove(&session->cell->calls, call);
	}
}

/* ---- as a part ---- */

static void on_exit_of_interpreter(struct session *session)
{
	if (!session->cell)
		return;
	session->cell->asking = false;
	session_end_calls(session);
}

static void on_revived(struct session *session)
{
	if (session->cell && session->cell->calls.n > 0)
		arm(session);
}

const struct part calls_part = {.name = "calls", .on_exit = on_exit_of_interpreter, .on_revived = on_revived};
