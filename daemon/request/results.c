/* Answers that are asked for by another request than the one that they are for. */
#include "request.h"

#include <inttypes.h>

/* Which of a user's answers made room is not remembered, only that some did. */
static const char *why_gone(const struct sessions *sessions, uid_t owner)
{
	const struct user *user = user_find(sessions->users, owner);

	return user && user->made_room > 0 ? "; the oldest of your answers have made room for newer ones" : "";
}

void handle_attach(struct sessions *sessions, const struct address *from, const struct request *request)
{
	const struct attach_request *attach = &request->attach;
	const struct watch watch = {
		.stream = attach->stream,
		.input = attach->input,
		.calls = attach->calls,
		.from = {attach->stdout, attach->stderr},
		.displays = attach->displays,
	};
	const struct session_name *name = &request->name;
	struct promise *promise;

	if (!attach->key.data == !attach->cell) {
		client_error(sessions->clients, from, "bad_request", "attach: either cell or key");
		return;
	}
	if (attach->key.data)
		promise = promises_find_key(sessions->promises, name->owner, name->id, attach->key);
	else
		promise = promises_find_cell(sessions->promises, name->owner, name->id, attach->cell);
	if (promise && promise->is_cell)
		request_join(sessions, from, promise, &watch);
	else if (attach->key.data)
		client_error(sessions->clients, from, "gone", "there is no cell with the key \"%.*s\" any more%s",
			     (int)MIN(attach->key.size, (size_t)KEY_MAX), attach->key.data,
			     why_gone(sessions, name->owner));
	else
		client_error(sessions->clients, from, "gone",
			     "the result of cell %" PRIu64 " is not kept, or there has been no such cell%s",
			     attach->cell, why_gone(sessions, name->owner));
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
		.bytes = promise_answer_size(promise),
	};
	struct exec_reply reply;

	if (promise->answer && promise_result(promise, &reply))
		record.returncode = reply.returncode;
	return record;
}

void handle_results(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct results_reply reply = {.id = request->id};
	struct list *cells = promises_cells_of(sessions->promises, request->name.owner, request->name.id);
	_cleanup_(wire_list_deinit) struct wire_list results = {0};
	struct promise *promise;

	list_for_each (promise, cells, cells) {
		const struct result_record record = record_of(promise);

		(void)wire_list_add(&results, &result_record_schema, &record);
	}
	reply.results = wire_list_bytes(&results);
	client_reply(sessions->clients, from, results.r, &results_reply_schema, &reply);
}
