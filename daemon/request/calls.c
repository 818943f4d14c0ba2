/* The calls of cells, answered by who offered the functions, or by somebody else: a person who is asked, a program
 * that comes later. */
#include "request.h"

#include "session/parts/calls.h"

#include <inttypes.h>

/* Of one answer to `calls`: records, and bytes of arguments. */
#define RECORDS_MAX 1000
#define ARGUMENTS_MAX ((size_t)64 << 10)
#define ARGUMENTS_SUM_MAX ((size_t)1 << 20)
/* They are so much deeper in that answer than in the `call` that they came with. */
#define ARGUMENTS_DEPTH_MAX (WIRE_DEPTH_MAX - 4)

/* ---- by who offered the function ---- */

void handle_return(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct return_request *answer = &request->returned;
	const struct returned_message returned = {
		.value = answer->value, .error = answer->error, .text = answer->text};
	struct empty_reply reply = {.id = request->id};
	struct address exec = *from;
	struct session *session;
	struct call *call;

	exec.id = answer->exec;
	session = session_running(sessions, &exec);
	call = session && session_busy(session) ? calls_find(&session->cell->calls, answer->number) : NULL;
	if (!call) {
		client_error(sessions->clients, from, "gone",
			     "call %" PRIu64 " of request %" PRIu64
			     " does not wait for an answer: it has one, or its cell waits no longer",
			     answer->number, exec.id);
		return;
	}
	if (answer->hold && call->state == CALL_ASKS) {
		client_error(sessions->clients, from, "bad_request",
			     "hold: call %" PRIu64 " waits already, for somebody to approve it", answer->number);
		return;
	}
	if (answer->hold)
		session_hold_call(session, call, answer->text, &exec);
	else if (!session_return_call(session, call, &returned, &exec)) {
		client_limit(sessions->clients, from, "too_large", session->profile->name, "call_size",
			     "the answer is larger than call_size = %" PRIu64
			     " allows; the cell has an error instead of it",
			     session->profile->call_size);
		return;
	}
	client_send(sessions->clients, from, &empty_reply_schema, &reply);
}

/* ---- what waits ---- */

static void record_put(struct wire_list *list, const struct session *session, const struct call *call, uid_t asker,
		       size_t *roomp)
{
	static const char *const states[] = {[CALL_OUT] = "out", [CALL_ASKS] = "asks", [CALL_HELD] = "held"};
	const struct promise *promise = session->cell->reply.promise;
	const struct bytes arguments = call->arguments;
	char name[SESSION_NAME_SIZE];
	struct call_record record = {
		.key = bytes_of(promise->key[0] ? promise->key : NULL),
		.cell = session->cell->number,
		.number = call->number,
		.function = call->function,
		.bytes = arguments.size,
		.state = bytes_of(states[call->state]),
		.text = bytes_of(call->text),
		.age = event_seconds(event_now() - call->since),
		.uid = session->owner,
	};

	if (session->id[0])
		record.session = bytes_of(session_name_write(name, session->id, session->owner, asker));
	if (arguments.size <= MIN(*roomp, ARGUMENTS_MAX) &&
	    wire_scan(arguments, ARGUMENTS_DEPTH_MAX, arguments.size) == arguments.size) {
		record.arguments = arguments;
		*roomp -= arguments.size;
	}
	(void)wire_list_add(list, &call_record_schema, &record);
}

/* Whether @session may have calls that @request asks for. */
static bool request_matches(const struct session *session, const struct request *request)
{
	return session_busy(session) && session->cell->calls.n > 0 &&
	       (!request->named.data || session == request->session);
}

void handle_calls(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct calls_reply reply = {.id = request->id};
	_cleanup_(wire_list_deinit) struct wire_list list = {0};
	struct session *session = NULL;
	size_t room = ARGUMENTS_SUM_MAX;
	struct call *call;

	if (request->named.data && !session_named(sessions, from, request))
		return;
	while ((session = sessions_next(sessions, from->uid, session))) {
		if (!request_matches(session, request))
			continue;
		list_for_each (call, &session->cell->calls.list, node)
			if (list.n < RECORDS_MAX)
				record_put(&list, session, call, from->uid, &room);
			else
				reply.more++;
	}
	reply.calls = wire_list_bytes(&list);
	client_reply(sessions->clients, from, list.r, &calls_reply_schema, &reply);
}

void handle_watch_calls(struct sessions *sessions, const struct address *from, const struct request *request)
{
	watches_add(sessions, from, request->watch_calls.seen, request->watch_calls.wait);
}

/* ---- by somebody else ---- */

/* The session of the call that is meant; NULL if there is none, or more than one has a cell of that key. */
static struct session *session_of(struct sessions *sessions, const struct address *from,
				  const struct request *request)
{
	const struct answer_call_request *answer = &request->answer_call;
	struct session *session = NULL, *found = NULL;

	while ((session = sessions_next(sessions, from->uid, session))) {
		if (!request_matches(session, request) || (answer->cell && answer->cell != session->cell->number) ||
		    (answer->of.data && !bytes_is(answer->of, session->cell->reply.promise->key)))
			continue;
		if (found)
			return NULL;
		found = session;
	}
	return found;
}

/* Whether the answer says what it must, and no more, where no value is None; if not, the client has been told. */
static bool answer_says_one_thing(struct sessions *sessions, const struct address *from,
				  const struct answer_call_request *answer)
{
	if (answer->of.data ? !key_valid(answer->of) : !answer->session.data)
		client_error(sessions->clients, from, "bad_request",
			     "answer_call: the session, or of: the key of the cell's exec");
	else if (answer->approve + !!answer->value.data + !!answer->error.data > 1)
		client_error(sessions->clients, from, "bad_request",
			     "answer_call: one of approve, value and error");
	else
		return true;
	return false;
}

/* The same for whether that call can be answered so. */
static bool call_takes(struct sessions *sessions, const struct address *from, const struct session *session,
		       const struct call *call, const struct answer_call_request *answer)
{
	size_t size = answer->value.size + answer->error.size + answer->text.size;

	if (!call)
		client_error(sessions->clients, from, "gone",
			     "no such call waits: it has an answer, or its cell waits no longer");
	else if (answer->approve && call->state != CALL_ASKS)
		client_error(sessions->clients, from, "gone",
			     "this call does not ask, or not any more: only a value or an error ends it");
	else if (size > session->profile->call_size)
		client_limit(sessions->clients, from, "too_large", session->profile->name, "call_size",
			     "the answer has %zu bytes; call_size = %" PRIu64 " is the limit", size,
			     session->profile->call_size);
	else
		return true;
	return false;
}

void handle_answer_call(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct answer_call_request *answer = &request->answer_call;
	const struct returned_message returned = {
		.value = answer->value, .error = answer->error, .text = answer->text};
	struct empty_reply reply = {.id = request->id};
	struct session *session;
	struct call *call;

	if (!answer_says_one_thing(sessions, from, answer))
		return;
	session = session_of(sessions, from, request);
	call = session ? calls_find(&session->cell->calls, answer->number) : NULL;
	if (!call_takes(sessions, from, session, call, answer))
		return;
	if (answer->approve)
		session_approve_call(session, call, from->uid);
	else
		session_answer_call(session, call, &returned, from->uid);
	client_send(sessions->clients, from, &empty_reply_schema, &reply);
}
