/* The requests of clients: the session that one names is looked up, and whether it was asked before; then a table
 * has its handler. Each handler answers exactly once: now, or later if a session must do something first, which
 * keeps the address. */
#include "request.h"

#include "base/log.h"
#include "proto/clock.h"
#include "session/parts/calls.h"
#include "vault/breaker.h"

#include <inttypes.h>
#include <stdio.h>

bool session_name_given(struct session_name *name, struct sessions *sessions, const struct address *from,
			struct bytes text)
{
	if (!session_name_read(name, text, from->uid))
		return true;
	client_error(sessions->clients, from, "bad_request",
		     "a session id is printable characters without space, 1 to %d bytes of UTF-8%s", SESSION_ID_MAX,
		     from->uid == 0 ? "; another user's is the number of the user, a slash and the id" : "");
	return false;
}

/* "42s", "5m", "2h 5m", "3d 4h". */
static void age_write(char out[static 32], double seconds)
{
	uint64_t s = seconds > 0 ? (uint64_t)seconds : 0;

	if (s < 3600)
		snprintf(out, 32, "%" PRIu64 "%s", s < 60 ? s : s / 60, s < 60 ? "s" : "m");
	else if (s < 86400)
		snprintf(out, 32, "%" PRIu64 "h %" PRIu64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(out, 32, "%" PRIu64 "d %" PRIu64 "h", s / 86400, s / 3600 % 24);
}

/* What is known of the last session of a name, as a record in @buffer, and in words after ": ". */
static void ending_tell(msgpack_sbuffer *buffer, char out[static PAST_SENTENCE_SIZE], const struct ending *ending)
{
	char words[PAST_SENTENCE_SIZE], age[32];

	(void)past_put(buffer, ending);
	age_write(age, ending ? clock_date() - ending->when : 0);
	snprintf(out, PAST_SENTENCE_SIZE, "%s%s%s%s", past_words(words, ending), ending ? ", " : "",
		 ending ? age : "", ending ? " ago" : "");
}

/* There was one. */
static void no_session_any_more(struct sessions *sessions, const struct address *from, struct bytes text,
				const struct ending *ending)
{
	char words[PAST_SENTENCE_SIZE];
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};

	ending_tell(&buffer, words, ending);
	client_gone(sessions->clients, from, "no_session", wire_bytes(&buffer), ending->why,
		    "there is no session \"%.*s\" any more: %s; open or exec makes one", (int)text.size, text.data,
		    words);
}

void no_session(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct session_name *name = &request->name;
	struct bytes text = request->named;
	const struct ending *ending = past_find(&sessions->past, name);

	if (ending && name->owner == from->uid) {
		no_session_any_more(sessions, from, text, ending);
		return;
	}
	client_error(sessions->clients, from, "no_session",
		     name->owner == from->uid ? "there is no session \"%.*s\"; open or exec makes one"
					      : "there is no session \"%.*s\"; only its own user can make one",
		     (int)text.size, text.data);
}

/* A request may be for the session @birth of its name alone. Whether that is no more, and the client has been told.
 */
static bool session_is_gone(struct sessions *sessions, const struct address *from, const struct request *request,
			    uint64_t birth)
{
	const struct ending *ending;
	char words[PAST_SENTENCE_SIZE];
	struct bytes text = request->named;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};

	if (!birth || (request->session && request->session->birth == birth))
		return false;
	ending = past_find(&sessions->past, &request->name);
	if (ending && ending->birth != birth)
		ending = NULL;
	ending_tell(&buffer, words, ending);
	client_gone(sessions->clients, from, "gone", wire_bytes(&buffer), ending ? ending->why : NULL,
		    "the session \"%.*s\" that this is for is no more: %s; nothing has been done", (int)text.size,
		    text.data, words);
	return true;
}

struct session *session_named(struct sessions *sessions, const struct address *from, const struct request *request)
{
	if (!request->session)
		no_session(sessions, from, request);
	return request->session;
}

/* Only between two cells: what would be saved or thrown away must not be in motion. */
struct session *session_between_cells(struct sessions *sessions, const struct address *from,
				      const struct request *request)
{
	struct session *session = session_named(sessions, from, request);

	if (!session || (!session_busy(session) && session->n_queued == 0))
		return session;
	client_error(sessions->clients, from, "busy",
		     "a cell runs or waits in session \"%s\"; interrupt it or wait for it", session->id);
	return NULL;
}

bool session_room_for_operation(struct sessions *sessions, const struct address *from,
				const struct session *session)
{
	if (list_size(&session->operations) < session->profile->queue)
		return true;
	client_limit(sessions->clients, from, "limit", session->profile->name, "queue",
		     "as many requests wait in session \"%s\" already as queue = %" PRIu64 " allows", session->id,
		     session->profile->queue);
	return false;
}

/* ---- what is done once ---- */

/* The member called @name, or absent if the request has none. */
static struct bytes text_of(const struct wire_schema *schema, const struct request *request, const char *name)
{
	for (size_t i = 0; i < schema->n_fields; i++)
		if (schema->fields[i].type == WIRE_STR && bytes_is(schema->fields[i].name, name))
			return *(const struct bytes *)((const char *)&request->id + schema->fields[i].offset);
	return (struct bytes){.data = NULL};
}

/* The same for a number; 0. */
static uint64_t number_of(const struct wire_schema *schema, const struct request *request, const char *name)
{
	for (size_t i = 0; i < schema->n_fields; i++)
		if (schema->fields[i].type == WIRE_UINT && bytes_is(schema->fields[i].name, name))
			return *(const uint64_t *)((const char *)&request->id + schema->fields[i].offset);
	return 0;
}

static struct keeping keeping_for(struct sessions *sessions, const struct address *from,
				  const struct wire_schema *schema, const struct request *request)
{
	const struct session *session = request->session;
	const struct profile *profile =
		session ? session->profile : profile_asked(sessions, from, text_of(schema, request, "profile"));

	return profile_keeping(profile ? profile : config_profile(sessions->config, BYTES("")));
}

static void reply_detached(struct sessions *sessions, const struct address *from, const struct promise *promise,
			   struct bytes session)
{
	struct detached_reply reply = {
		.id = from->id, .key = bytes_of(promise->key), .session = session, .cell = promise->cell};

	client_send(sessions->clients, from, &detached_reply_schema, &reply);
}

void exec_detach(struct sessions *sessions, const struct address *from, const struct exec_request *exec)
{
	struct promise *promise = from->promise;
	struct address direct = *from;

	/* It may have been answered at once. */
	if (promise->answer)
		return;
	direct.promise = NULL;
	promise_leave(promise, from);
	reply_detached(sessions, &direct, promise, exec->session);
}

void request_join(struct sessions *sessions, const struct address *from, struct promise *promise,
		  const struct watch *watch)
{
	struct session *session = NULL;

	if (promise_join(promise, from, watch)) {
		client_error(sessions->clients, from, "internal", "out of memory");
		return;
	}
	while ((session = sessions_next(sessions, from->uid, session)))
		if (session->cell && session->cell == promise->running)
			session_heed_calls(session);
}

/* It has been asked before. */
static void join_again(struct sessions *sessions, const struct address *from, struct promise *promise,
		       const struct wire_schema *schema, const struct request *request)
{
	struct watch watch = {.stream = false};
	bool is_exec = schema == &exec_request_schema;

	if (!promise_is_of(promise, schema, &request->id)) {
		client_error(sessions->clients, from, "bad_request",
			     "the key \"%s\" was that of another request; choose a new one for each", promise->key);
		return;
	}
	if (promise->is_cell && is_exec && request->exec.detach) {
		reply_detached(sessions, from, promise, request->exec.session);
		return;
	}
	if (promise->is_cell && is_exec)
		watch = (struct watch){.stream = request->exec.stream,
				       .input = request->exec.input,
				       .calls = request->exec.functions.data,
				       .from = {request->exec.stdout, request->exec.stderr},
				       .displays = request->exec.displays};
	request_join(sessions, from, promise, &watch);
}

/* A new promise, with its first asker. Returns NULL when the client has been told. */
static struct promise *promise_begin(struct sessions *sessions, const struct address *from,
				     const struct wire_schema *schema, const struct request *request,
				     struct bytes key)
{
	const struct session_name *name = &request->name;
	struct keeping keeping = keeping_for(sessions, from, schema, request);
	bool is_exec = schema == &exec_request_schema;
	struct watch watch = {.stream = is_exec && request->exec.stream && !request->exec.detach,
			      .input = is_exec && request->exec.input && !request->exec.detach,
			      .calls = is_exec && request->exec.functions.data && !request->exec.detach};
	bool by_key = key.size > 0 || (is_exec && request->exec.detach);
	struct promise *promise;
	int r;

	r = promise_new(&promise, sessions->promises, name->owner, name->id, key,
			by_key ? promise_fingerprint(schema, &request->id) : 0, &keeping);
	if (!r) {
		r = promise_join(promise, from, &watch);
		if (r)
			promise_forget(promise);
	}
	if (r) {
		client_error(sessions->clients, from, "internal", "out of memory");
		return NULL;
	}
	promise->by_root = from->uid != name->owner;
	if (is_exec && request->exec.detach && key.size == 0)
		promise_name(promise);
	promise->keep |= is_exec && request->exec.detach;
	return promise;
}

/* What is a cell, or may become one. */
static bool always_promised(const struct wire_schema *schema)
{
	return schema == &exec_request_schema || schema == &open_request_schema || schema == &save_request_schema ||
	       schema == &load_request_schema;
}

/* Whether @request names a session as one may be named; if not, the client has been told. */
static bool name_read(struct sessions *sessions, const struct address *from, const struct wire_schema *schema,
		      struct request *request)
{
	request->session = NULL;
	request->named = text_of(schema, request, "session");
	if (!session_name_given(&request->name, sessions, from, request->named))
		return false;
	if (request->named.data)
		request->session = sessions_find(sessions, &request->name);
	return true;
}

/* Requests with a key, and cells, are done once: they are looked up among the promises before their handlers see
 * them, so handlers need not know of this. An exec is a promise with or without a key, since a client may attach to
 * its cell. */
static void request_take(struct sessions *sessions, const struct address *from, const struct wire_schema *schema,
			 struct request *request,
			 void (*handler)(struct sessions *sessions, const struct address *from,
					 const struct request *request))
{
	struct bytes key = text_of(schema, request, "key");
	uint64_t birth = number_of(schema, request, "birth");
	struct address to = *from;
	struct promise *promise;

	if (blame_request(sessions->breaker, from->uid, schema, text_of(schema, request, "session"), key)) {
		client_error(sessions->clients, from, "internal", "%s", BLAME_REFUSAL);
		return;
	}
	if (!name_read(sessions, from, schema, request))
		return;
	if (schema == &attach_request_schema || (!key.data && !always_promised(schema))) {
		if (!session_is_gone(sessions, from, request, birth))
			handler(sessions, from, request);
		return;
	}
	if (key.data && !key_valid(key)) {
		client_error(sessions->clients, from, "bad_request",
			     "a key is 1 to %d printable characters without space", KEY_MAX);
		return;
	}
	promise =
		key.data ? promises_find_key(sessions->promises, request->name.owner, request->name.id, key) : NULL;
	if (promise) {
		join_again(sessions, from, promise, schema, request);
		return;
	}
	/* What was done before it ended has an answer nevertheless. */
	if (session_is_gone(sessions, from, request, birth))
		return;
	to.promise = promise_begin(sessions, from, schema, request, key);
	if (!to.promise)
		return;
	handler(sessions, &to, request);
	promise_taken(to.promise);
}

/* ---- the table ---- */

static const struct {
	const struct wire_schema *schema;
	void (*fn)(struct sessions *sessions, const struct address *from, const struct request *request);
} handlers[] = {
	{&exec_request_schema, handle_exec},
	{&input_request_schema, handle_input},
	{&return_request_schema, handle_return},
	{&calls_request_schema, handle_calls},
	{&watch_calls_request_schema, handle_watch_calls},
	{&answer_call_request_schema, handle_answer_call},
	{&attach_request_schema, handle_attach},
	{&results_request_schema, handle_results},
	{&hello_request_schema, handle_hello},
	{&open_request_schema, handle_open},
	{&interrupt_request_schema, handle_interrupt},
	{&reset_request_schema, handle_reset},
	{&shutdown_request_schema, handle_shutdown},
	{&list_request_schema, handle_list},
	{&checkpoint_request_schema, handle_checkpoint},
	{&checkpoints_request_schema, handle_checkpoints},
	{&restore_request_schema, handle_restore},
	{&undo_request_schema, handle_undo},
	{&branch_request_schema, handle_branch},
	{&diff_request_schema, handle_diff},
	{&drop_request_schema, handle_drop},
	{&get_request_schema, handle_get},
	{&put_request_schema, handle_put},
	{&files_request_schema, handle_files},
	{&copy_in_request_schema, handle_copy_in},
	{&save_request_schema, handle_save},
	{&load_request_schema, handle_load},
	{&saves_request_schema, handle_saves},
	{&unsave_request_schema, handle_unsave},
	{&stop_request_schema, handle_stop},
	{&reload_request_schema, handle_reload},
	{&info_request_schema, handle_info},
	{&complete_request_schema, handle_complete},
	{&inspect_request_schema, handle_inspect},
	{&vars_request_schema, handle_vars},
	{&check_request_schema, handle_check},
	{&is_complete_request_schema, handle_is_complete},
	{&history_request_schema, handle_history},
	{&stray_request_schema, handle_stray},
	{&stats_request_schema, handle_stats},
	{&packages_request_schema, handle_packages},
};

const char *request_type(size_t i)
{
	return i < ARRAY_SIZE(handlers) ? handlers[i].schema->type : NULL;
}

static void request_handle(struct sessions *sessions, const struct address *from, const struct wire_frame *frame)
{
	struct wire_fault fault;
	struct request request;

	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (!bytes_is(frame->type, handlers[i].schema->type))
			continue;
		if (wire_decode(&request.id, handlers[i].schema, frame->body, &fault))
			client_error(
				sessions->clients, from, "bad_request", "%s: the field \"%s\" was expected %s%s",
				handlers[i].schema->type, fault.field,
				strncmp(fault.expected, "to ", 3) && strncmp(fault.expected, "not ", 4) ? "to be "
													: "",
				fault.expected);
		else
			request_take(sessions, from, handlers[i].schema, &request, handlers[i].fn);
		return;
	}
	client_error(sessions->clients, from, "unsupported", "this laird knows no request \"%.*s\"",
		     (int)MIN(frame->type.size, 64U), frame->type.data);
}

/* Somebody may watch it, or have it over sooner, and says hello first. */
static bool while_stopping(struct bytes type)
{
	return bytes_is(type, "hello") || bytes_is(type, "stats") || bytes_is(type, "stop");
}

void request_receive(struct sessions *sessions, const struct address *from, struct bytes data)
{
	bool refused = blame_frame(sessions->breaker, from->uid, data.size);
	struct address to = *from;
	struct wire_frame frame;
	int r = refused ? WIRE_E_MALFORMED : wire_open(&frame, data);

	sessions->stats.requests++;
	if (r == WIRE_E_VERSION) {
		client_error(sessions->clients, &to, "unsupported",
			     "version %" PRIu64 " of the protocol is not spoken here; version %d is", frame.version,
			     WIRE_VERSION);
		return;
	}
	if (r || !wire_find_id(&to.id, frame.body)) {
		front_count_refused(&sessions->clients->front, FRONT_DROPPED, "it is no request");
		return;
	}
	if (sessions->cages->stopping && !while_stopping(frame.type))
		client_error(sessions->clients, &to, "gone", "laird is stopping");
	else
		request_handle(sessions, &to, &frame);
}
