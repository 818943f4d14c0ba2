/* Requests about the state of a session, or about code alone, as questions to an interpreter; and the history of
 * cells, which the router itself remembers. */
#include "request.h"

#include <inttypes.h>

#define NAMES_MAX 1000

static bool names_valid(struct bytes raw)
{
	size_t cursor = 0, n = 0;
	struct bytes name;

	while (wire_next_string(raw, &cursor, &name))
		n++;
	return cursor == raw.size && n <= NAMES_MAX;
}

/* Whether the question may be put to a session of @profile; if not, the client has been told. */
static bool question_acceptable(struct sessions *sessions, const struct address *from,
				const struct profile *profile, uid_t owner, struct bytes code, struct bytes names)
{
	if (code.size > profile->code_size)
		client_limit(sessions->clients, from, "too_large", profile->name, "code_size",
			     "the code has %zu bytes; code_size = %" PRIu64 " is the limit", code.size,
			     profile->code_size);
	else if (names.data && !names_valid(names))
		client_error(sessions->clients, from, "bad_request",
			     "expected a list of names of variables, at most %d", NAMES_MAX);
	else
		return user_room(sessions, from, owner, question_price(code, names));
	return false;
}

/* The question, not yet asked; NULL when the client has been told why not. */
static struct operation *question_make(struct sessions *sessions, const struct address *from,
				       const struct session *session, enum question_kind kind, struct bytes code,
				       struct bytes names)
{
	struct operation *operation = NULL;

	if (operation_new(&operation, OPERATION_QUESTION, from, (struct bytes){.data = NULL}) ||
	    question_new(&operation->question, kind, session->user, code, names)) {
		operation_free(operation);
		client_error(sessions->clients, from, "internal", "out of memory");
		return NULL;
	}
	return operation;
}

/* The same, for a session that can be asked now. */
static struct operation *question_for(struct sessions *sessions, const struct address *from,
				      struct session *session, enum question_kind kind, struct bytes code,
				      struct bytes names)
{
	if (!session || !question_acceptable(sessions, from, session->profile, session->owner, code, names) ||
	    !session_room_for_operation(sessions, from, session))
		return NULL;
	return question_make(sessions, from, session, kind, code, names);
}

void handle_complete(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct complete_request *complete = &request->complete;
	struct session *session = session_between_cells(sessions, from, request);
	struct operation *operation = question_for(sessions, from, session, QUESTION_COMPLETE, complete->code,
						   (struct bytes){.data = NULL});

	if (!operation)
		return;
	operation->question->cursor = complete->cursor;
	session_operate(session, operation);
}

void handle_inspect(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct inspect_request *inspect = &request->inspect;
	struct session *session = session_between_cells(sessions, from, request);
	struct operation *operation = question_for(sessions, from, session, QUESTION_INSPECT, inspect->code,
						   (struct bytes){.data = NULL});

	if (!operation)
		return;
	operation->question->cursor = inspect->cursor;
	operation->question->source = inspect->source;
	session_operate(session, operation);
}

void handle_vars(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct vars_request *vars = &request->vars;
	struct session *session = session_between_cells(sessions, from, request);
	struct operation *operation =
		question_for(sessions, from, session, QUESTION_VARS, (struct bytes){.data = NULL}, vars->forget);

	if (operation)
		session_operate(session, operation);
}

void handle_reset(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct reset_request *reset = &request->reset;
	struct session *session;
	struct operation *operation;

	if (!reset->keep.data) {
		session = session_named(sessions, from, request);
		if (session)
			session_reset(session, from);
		return;
	}
	session = session_between_cells(sessions, from, request);
	operation = question_for(sessions, from, session, QUESTION_KEEP, (struct bytes){.data = NULL}, reset->keep);
	if (operation)
		session_operate(session, operation);
}

/* ---- about code alone ---- */

/* By an interpreter that no session has, which ends with its answer. */
static void ask_one_shot(struct sessions *sessions, const struct address *from, const struct check_request *check,
			 enum question_kind kind)
{
	const struct profile *profile = profile_asked(sessions, from, check->profile);
	struct operation *operation;
	struct session *session;

	if (profile &&
	    !question_acceptable(sessions, from, profile, from->uid, check->code, (struct bytes){.data = NULL}))
		return;
	session = session_make(sessions, from, (struct bytes){.data = NULL},
			       &(struct opening){.profile = check->profile, .with.code = check->code});
	if (!session)
		return;
	operation = question_make(sessions, from, session, kind, check->code, (struct bytes){.data = NULL});
	if (operation)
		session_operate(session, operation);
	else
		session_end(session, "shutdown");
}

static void ask_about_code(struct sessions *sessions, const struct address *from, const struct request *request,
			   const struct check_request *check, enum question_kind kind)
{
	struct operation *operation;
	struct session *session;

	if (!check->session.data) {
		ask_one_shot(sessions, from, check, kind);
		return;
	}
	session = session_between_cells(sessions, from, request);
	if (session && check->profile.size > 0 && !bytes_is(check->profile, session->profile->name)) {
		client_error(sessions->clients, from, "bad_request", "session \"%s\" has the profile \"%s\"",
			     session->id, session->profile->name);
		return;
	}
	operation = question_for(sessions, from, session, kind, check->code, (struct bytes){.data = NULL});
	if (operation)
		session_operate(session, operation);
}

void handle_check(struct sessions *sessions, const struct address *from, const struct request *request)
{
	ask_about_code(sessions, from, request, &request->check, QUESTION_CHECK);
}

void handle_is_complete(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct is_complete_request *it = &request->is_complete;
	const struct check_request same = {
		.id = it->id, .session = it->session, .profile = it->profile, .code = it->code};

	ask_about_code(sessions, from, request, &same, QUESTION_IS_COMPLETE);
}

/* ---- what has been run ---- */

void handle_history(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct session *session = session_named(sessions, from, request);
	struct history_reply reply = {.id = request->id};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};

	if (!session)
		return;
	if (journal_put(&session->journal, session->at, request->history.n, &buffer)) {
		client_error(sessions->clients, from, "internal", "out of memory");
	} else {
		reply.cells = wire_bytes(&buffer);
		client_send(sessions->clients, from, &history_reply_schema, &reply);
	}
}

/* ---- what is written between cells ---- */

/* Whoever has the answer has the output: the next cell does not begin with it. */
void handle_stray(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct session *session = session_named(sessions, from, request);
	struct stray_reply reply = {.id = request->id, .stdout = BYTES(""), .stderr = BYTES("")};
	bool any;

	if (!session)
		return;
	reply.at = session->stray_given;
	any = !session->cell && (session->stray[0].total > 0 || session->stray[1].total > 0);
	if (any) {
		reply.stdout = output_join(&session->stray[0]);
		reply.stderr = output_join(&session->stray[1]);
	}
	if (client_answer(sessions->clients, from, &stray_reply_schema, &reply) || !any)
		return;
	session->stray_given += reply.stdout.size + reply.stderr.size;
	session_drop_stray(session);
}
