/* Requests that are done once. A request with a key is looked up among the promises before its handler sees it,
 * so handlers need not know of this. An exec is a promise with or without a key, since a client may attach to
 * its cell. */
#include "request.h"

#include "vault/breaker.h"

#include <inttypes.h>

/* The member called @name, or absent if the request has none. */
static struct bytes text_of(const struct wire_schema *schema, const union request *request, const char *name)
{
	for (size_t i = 0; i < schema->n_fields; i++)
		if (schema->fields[i].type == WIRE_STR && bytes_is(schema->fields[i].name, name))
			return *(const struct bytes *)((const char *)request + schema->fields[i].offset);
	return (struct bytes){.data = NULL};
}

/* The same for a number; 0. */
static uint64_t number_of(const struct wire_schema *schema, const union request *request, const char *name)
{
	for (size_t i = 0; i < schema->n_fields; i++)
		if (schema->fields[i].type == WIRE_UINT && bytes_is(schema->fields[i].name, name))
			return *(const uint64_t *)((const char *)request + schema->fields[i].offset);
	return 0;
}

static struct keeping keeping_for(struct sessions *sessions, const struct session_name *name,
				  struct bytes profile_name)
{
	struct session *session = sessions_find(sessions, name);
	const struct profile *profile = session ? session->profile : config_profile(sessions->config, profile_name);

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

static void join(struct sessions *sessions, const struct address *from, struct promise *promise,
		 const struct watch *watch)
{
	struct session *session = NULL;

	if (promise_join(promise, from, watch)) {
		client_error(sessions->clients, from, "internal", "out of memory");
		return;
	}
	while ((session = sessions_next(sessions, from->uid, session)))
		if (session->cell && session->cell == promise->running)
			session_heed_ask(session);
}

/* It has been asked before. */
static void join_again(struct sessions *sessions, const struct address *from, struct promise *promise,
		       const struct wire_schema *schema, const union request *request)
{
	struct watch watch = {.stream = false};
	bool is_exec = schema == &exec_request_schema;

	if (!promise_is_of(promise, schema, request)) {
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
				       .from = {request->exec.stdout, request->exec.stderr},
				       .displays = request->exec.displays};
	join(sessions, from, promise, &watch);
}

/* A new promise, with its first asker. Returns NULL when the client has been told. */
static struct promise *promise_begin(struct sessions *sessions, const struct address *from,
				     const struct wire_schema *schema, const union request *request,
				     const struct session_name *name, struct bytes key)
{
	struct keeping keeping = keeping_for(sessions, name, text_of(schema, request, "profile"));
	bool is_exec = schema == &exec_request_schema;
	struct watch watch = {.stream = is_exec && request->exec.stream && !request->exec.detach,
			      .input = is_exec && request->exec.input && !request->exec.detach};
	bool by_key = key.size > 0 || (is_exec && request->exec.detach);
	struct promise *promise;
	int r;

	r = promise_new(&promise, sessions->promises, name->owner, name->id, key,
			by_key ? promise_fingerprint(schema, request) : 0, &keeping);
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

void request_take(struct sessions *sessions, const struct address *from, const struct wire_schema *schema,
		  const union request *request,
		  void (*handler)(struct sessions *sessions, const struct address *from,
				  const union request *request))
{
	struct bytes key = text_of(schema, request, "key"), session = text_of(schema, request, "session");
	uint64_t birth = number_of(schema, request, "birth");
	struct session_name name;
	struct address to = *from;
	struct promise *promise;

	if (hand_request(sessions->breaker, from->uid, schema, session, key)) {
		client_error(sessions->clients, from, "internal", "%s", HAND_REFUSAL);
		return;
	}
	if (schema == &attach_request_schema || (!key.data && !always_promised(schema))) {
		if (!session_is_gone(sessions, from, session, birth))
			handler(sessions, from, request);
		return;
	}
	if (key.data && !key_valid(key)) {
		client_error(sessions->clients, from, "bad_request",
			     "a key is 1 to %d printable characters without space", KEY_MAX);
		return;
	}
	if (!session_name_given(&name, sessions, from, session))
		return;
	promise = key.data ? promises_find_key(sessions->promises, name.owner, name.id, key) : NULL;
	if (promise) {
		join_again(sessions, from, promise, schema, request);
		return;
	}
	/* What was done before it ended has an answer nevertheless. */
	if (session_is_gone(sessions, from, session, birth))
		return;
	to.promise = promise_begin(sessions, from, schema, request, &name, key);
	if (!to.promise)
		return;
	handler(sessions, &to, request);
	promise_taken(to.promise);
}

/* ---- attach, results ---- */

/* Which of a user's answers made room is not remembered, only that some did. */
static const char *why_gone(const struct sessions *sessions, uid_t owner)
{
	const struct user *user = user_find(sessions->users, owner);

	return user && user->made_room > 0 ? "; the oldest of your answers have made room for newer ones" : "";
}

void handle_attach(struct sessions *sessions, const struct address *from, const union request *request)
{
	const struct attach_request *attach = &request->attach;
	const struct watch watch = {
		.stream = attach->stream,
		.input = attach->input,
		.from = {attach->stdout, attach->stderr},
		.displays = attach->displays,
	};
	struct session_name name;
	struct promise *promise;

	if (!session_name_given(&name, sessions, from, attach->session))
		return;
	if (!attach->key.data == !attach->cell) {
		client_error(sessions->clients, from, "bad_request", "attach: either cell or key");
		return;
	}
	if (attach->key.data)
		promise = promises_find_key(sessions->promises, name.owner, name.id, attach->key);
	else
		promise = promises_find_cell(sessions->promises, name.owner, name.id, attach->cell);
	if (promise && promise->is_cell)
		join(sessions, from, promise, &watch);
	else if (attach->key.data)
		client_error(sessions->clients, from, "gone", "there is no cell with the key \"%.*s\" any more%s",
			     (int)MIN(attach->key.size, (size_t)KEY_MAX), attach->key.data,
			     why_gone(sessions, name.owner));
	else
		client_error(sessions->clients, from, "gone",
			     "the result of cell %" PRIu64 " is not kept, or there has been no such cell%s",
			     attach->cell, why_gone(sessions, name.owner));
}

static struct result_record record_of(const struct promise *promise)
{
	struct result_record record = {
		.key = bytes_of(promise->key[0] ? promise->key : NULL),
		.cell = promise->cell,
		.state = bytes_of(promise->answer ? "finished"
				  : promise->cell ? "running"
						  : "queued"),
		.age = event_seconds(event_now() - promise->since),
		.bytes = promise->answer_size,
	};
	struct exec_reply reply;

	if (promise->answer && promise_result(promise, &reply))
		record.returncode = reply.returncode;
	return record;
}

void handle_results(struct sessions *sessions, const struct address *from, const union request *request)
{
	struct results_reply reply = {.id = request->id};
	struct session_name name;
	struct list *cells;
	struct promise *promise;
	msgpack_sbuffer buffer;
	int r;

	if (!session_name_given(&name, sessions, from, request->results.session))
		return;
	cells = promises_cells_of(sessions->promises, name.owner, name.id);
	msgpack_sbuffer_init(&buffer);
	r = wire_put_array(&buffer, list_size(cells));
	list_for_each (promise, cells, cells) {
		const struct result_record record = record_of(promise);

		if (!r)
			r = wire_encode_body(&buffer, &result_record_schema, &record);
	}
	reply.results = wire_bytes(&buffer);
	if (r)
		client_error(sessions->clients, from, "internal", "out of memory");
	else
		client_send(sessions->clients, from, &results_reply_schema, &reply);
	msgpack_sbuffer_destroy(&buffer);
}
