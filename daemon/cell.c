/* Cells: made from a request, answered once. */
#include "cell.h"

int cell_new(struct cell **cellp, const struct exec_request *request, const struct address *reply, uint64_t timeout,
	     size_t output_limit)
{
	struct cell *cell = calloc(1, sizeof(*cell));

	if (!cell)
		return -ENOMEM;
	cell->code = malloc(request->code.size + 1);
	if (!cell->code) {
		free(cell);
		return -ENOMEM;
	}
	memcpy(cell->code, request->code.data, request->code.size);
	cell->code_size = request->code.size;
	list_init(&cell->node);
	cell->reply = *reply;
	reply->promise->is_cell = true;
	reply->promise->running = cell;
	cell->timeout = timeout;
	cell->stream = request->stream;
	cell->input = request->input;
	output_init(&cell->stdout_, output_limit);
	output_init(&cell->stderr_, output_limit);
	*cellp = cell;
	return 0;
}

void cell_number(struct cell *cell, uint64_t number)
{
	cell->number = cell->reply.promise->cell = number;
	cell->reply.promise->since = cell->started = event_now();
}

bool cell_ask(struct cell *cell, const struct ask_message *ask)
{
	struct promise *promise = cell->reply.promise;

	if (!cell->input)
		return false;
	free(cell->prompt);
	cell->prompt = strndup(ask->prompt.data, ask->prompt.size);
	cell->password = ask->password;
	promise_ask(promise, ask->prompt, ask->password);
	/* One that can be attached to waits for somebody who does, as long as its time lasts. */
	cell->asking = cell->prompt && (promise->keep || promise_listened_to(promise));
	return cell->asking;
}

struct cell *cell_free(struct cell *cell)
{
	if (cell) {
		list_remove(&cell->node);
		output_deinit(&cell->stdout_);
		output_deinit(&cell->stderr_);
		free(cell->prompt);
		free(cell->code);
		free(cell);
	}
	return NULL;
}

static struct bytes joined_or_nothing(struct output *output)
{
	struct bytes joined;

	return output_join(output, &joined) ? BYTES("") : joined;
}

int cell_reply(struct cell *cell, struct clients *clients, const char *session, const struct verdict *verdict)
{
	struct exec_reply reply = {
		.id = cell->reply.id,
		.session = bytes_of(session),
		.cell = cell->number,
		.returncode = verdict->returncode,
		.state = bytes_of(verdict->state),
		.cause = bytes_of(verdict->cause),
		.stdout_dropped = output_dropped(&cell->stdout_),
		.stderr_dropped = output_dropped(&cell->stderr_),
		.text = verdict->text,
		.error = verdict->error,
		.blocked = verdict->blocked,
		.unfaithful = verdict->unfaithful,
		.restored = verdict->restored,
		.forgotten = verdict->forgotten,
		.duration_ms = cell->started ? (double)(event_now() - cell->started) / 1000.0 : 0.0,
	};

	cell->reply.promise->heads[0] = cell->stdout_.head_size;
	cell->reply.promise->heads[1] = cell->stderr_.head_size;
	reply.stdout = joined_or_nothing(&cell->stdout_);
	reply.stderr = joined_or_nothing(&cell->stderr_);
	return client_send(clients, &cell->reply, &exec_reply_schema, &reply);
}
