/* The clients that wait for the answer of a promise: each gets the output from where it asks, the output that
 * follows, and the answer. */
#include "promise.h"

#include "cell.h"

#include <stdio.h>

/* How many may wait for one answer. If there are more, the first is told to go: it is likely gone already. */
#define ASKERS_MAX 16
/* Of one event that repeats output. */
#define CHUNK 65536

static void asker_free(struct promise *promise, struct asker *asker)
{
	list_remove(&asker->node);
	free(asker);
	promise->n_askers--;
}

/* ---- the answer ---- */

/* An asker that watched has had the output already. */
static int answer_send(const struct promise *promise, const struct asker *asker)
{
	struct clients *clients = promise->shelf->promises->clients;
	struct text text = {.bulk = NULL};
	struct exec_reply reply;
	int r;

	if (asker->stream && promise_result(promise, &reply)) {
		reply.id = asker->to.id;
		reply.stdout = reply.stderr = BYTES("");
		reply.stdout_dropped = asker->missed[PROMISE_STDOUT];
		reply.stderr_dropped = asker->missed[PROMISE_STDERR];
		reply.displays = (struct bytes){.data = NULL};
		reply.displays_dropped = MAX(reply.displays_dropped, asker->displays_missed);
		return clients_say(clients, &asker->to, &exec_reply_schema, &reply);
	}
	r = wire_readdress(&text.encoded, (struct bytes){.data = promise->answer, .size = promise->answer_size},
			   asker->to.id);
	if (!r)
		r = promise_load(promise, &text);
	if (!r)
		r = clients_post(clients, &asker->to, &text);
	text_free(&text);
	return r;
}

static bool is_for(const struct promise *promise, const struct asker *asker)
{
	const struct bytes answer = {.data = promise->answer, .size = promise->answer_size};
	struct wire_frame frame;
	uint64_t id;

	return !wire_open_answer(&frame, answer) && wire_find_id(&id, frame.body) && id == asker->to.id;
}

/* An empty answer stays in its place: the promise is answered. */
bool promise_give_answer(struct promise *promise)
{
	struct list *first = list_first(&promise->askers);
	struct asker *asker = first ? container_of(first, struct asker, node) : NULL;
	struct text text = {
		.encoded = {.data = promise->answer, .size = promise->answer_size, .alloc = promise->answer_size}};
	char *nothing;

	if (!asker || promise->n_askers > 1 || asker->stream || !is_for(promise, asker))
		return false;
	nothing = calloc(1, 1);
	if (!nothing)
		return false;
	if (promise_load(promise, &text) ||
	    clients_post(promise->shelf->promises->clients, &asker->to, &text) < 0) {
		bulk_unref(text.bulk);
		free(nothing);
		return false;
	}
	text_free(&text);
	promise->answer = nothing;
	promise->answer_size = 0;
	promise->bulk = bulk_unref(promise->bulk);
	asker_free(promise, asker);
	return true;
}

void promise_answer_all(struct promise *promise)
{
	struct asker *asker;

	list_for_each (asker, &promise->askers, node) {
		/* What is kept may be had again, by its key or number. */
		if (answer_send(promise, asker) < 0)
			clients_refuse(promise->shelf->promises->clients, &asker->to, "internal",
				       "out of memory to send the answer");
		asker_free(promise, asker);
	}
}

void promise_hang_up(struct promise *promise)
{
	struct asker *asker;

	list_for_each (asker, &promise->askers, node) {
		clients_hang_up(promise->shelf->promises->clients, &asker->to);
		asker_free(promise, asker);
	}
}

/* ---- who asks ---- */

bool promise_asked_by(const struct promise *promise, const struct address *request)
{
	struct asker *asker;

	list_for_each (asker, (struct list *)&promise->askers, node)
		if (address_same_request(&asker->to, request))
			return true;
	return false;
}

void promise_leave_all(struct promise *promise)
{
	struct asker *asker;

	list_for_each (asker, &promise->askers, node)
		asker_free(promise, asker);
}

void promise_leave(struct promise *promise, const struct address *to)
{
	struct asker *asker;

	list_for_each (asker, &promise->askers, node)
		if (address_same_request(&asker->to, to))
			asker_free(promise, asker);
}

static int output_send(struct promise *promise, struct asker *asker, enum promise_stream stream, uint64_t at,
		       struct bytes data)
{
	struct stdout_event event = {.id = asker->to.id, .data = data, .at = at};
	int r = clients_say(promise->shelf->promises->clients, &asker->to,
			    stream == PROMISE_STDOUT ? &stdout_event_schema : &stderr_event_schema, &event);

	if (r < 0)
		asker->missed[stream] += data.size;
	return r;
}

/* Send the part of @piece at or after @from. */
static void piece_send(struct promise *promise, struct asker *asker, enum promise_stream stream, uint64_t from,
		       struct piece piece)
{
	size_t at = from > piece.at ? (size_t)MIN(from - piece.at, piece.data.size) : 0;

	for (size_t n; at < piece.data.size; at += n) {
		n = MIN(piece.data.size - at, (size_t)CHUNK);
		output_send(promise, asker, stream, piece.at + at,
			    (struct bytes){.data = piece.data.data + at, .size = n});
	}
}

/* Send the output of the cell so far, as far as it is kept. */
static void output_repeat(struct promise *promise, struct asker *asker, const uint64_t from[2])
{
	struct piece pieces[PIECES_MAX];
	struct exec_reply reply = {.id = 0};
	size_t n;

	if (promise->answer && !promise_result(promise, &reply))
		return;
	for (int stream = 0; stream < 2; stream++) {
		if (promise->bulk && promise->bulk->bins[stream].size > 0)
			n = output_given(pieces, &promise->bulk->bins[stream],
					 stream ? reply.stderr_dropped : reply.stdout_dropped);
		else if (promise->answer)
			n = output_split(pieces, stream ? reply.stderr : reply.stdout, promise->heads[stream],
					 stream ? reply.stderr_dropped : reply.stdout_dropped);
		else
			n = promise->running ? output_pieces(stream ? &promise->running->stderr_
								    : &promise->running->stdout_,
							     pieces)
					     : 0;
		for (size_t i = 0; i < n; i++)
			piece_send(promise, asker, (enum promise_stream)stream, from[stream], pieces[i]);
	}
}

static int display_send(struct promise *promise, struct asker *asker, const struct shown *shown)
{
	struct display_event event = {
		.id = asker->to.id,
		.at = shown->at,
		.data = shown->data,
		.metadata = shown->metadata,
		.display_id = shown->display_id,
		.update = shown->update,
		.clear = shown->clear,
	};
	int r;

	r = clients_say(promise->shelf->promises->clients, &asker->to, &display_event_schema, &event);
	asker->displays_missed += r < 0;
	return r;
}

static void displays_repeat(struct promise *promise, struct asker *asker, uint64_t from)
{
	struct bytes array = {.data = NULL};
	struct exec_reply reply;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};
	struct shown shown;
	size_t cursor = 0;

	if (promise->answer && promise_result(promise, &reply))
		array = reply.displays;
	else if (promise->running && promise->running->displays.n > 0) {
		if (displays_join(&promise->running->displays, &buffer))
			asker->displays_missed += promise->running->displays.n;
		else
			array = wire_bytes(&buffer);
	}
	while (displays_next(array, &cursor, &shown))
		if (shown.at >= from)
			display_send(promise, asker, &shown);
}

static void ask_send(struct promise *promise, const struct asker *asker)
{
	const struct cell *cell = promise->running;
	struct ask_event event = {.id = asker->to.id,
				  .prompt = bytes_of(cell->prompt),
				  .password = cell->password,
				  .number = cell->asks};

	clients_say(promise->shelf->promises->clients, &asker->to, &ask_event_schema, &event);
}

/* As it stands: what its provider has put aside it knows. Whether the asker is still there. */
static bool call_send(struct promise *promise, struct asker *asker, struct call *call)
{
	struct clients *clients = promise->shelf->promises->clients;
	const struct held_event event = {.id = asker->to.id,
					 .number = call->number,
					 .function = call->function,
					 .arguments = call->arguments,
					 .text = bytes_of(call->text)};
	const struct call_event order = {.id = asker->to.id,
					 .number = call->number,
					 .function = call->function,
					 .arguments = call->arguments};
	int r;

	if (call->state == CALL_HELD)
		return true;
	if (call->state == CALL_ASKS)
		return clients_say(clients, &asker->to, &held_event_schema, &event) != CLIENT_E_GONE;
	r = clients_say(clients, &asker->to, &call_event_schema, &order);
	if (r != CLIENT_E_GONE)
		call_given(call);
	return r != CLIENT_E_GONE;
}

static void calls_repeat(struct promise *promise, struct asker *asker)
{
	struct call *call;

	if (!promise->running)
		return;
	list_for_each (call, &promise->running->calls.list, node)
		(void)call_send(promise, asker, call);
}

static void make_room(struct promise *promise)
{
	struct asker *first = container_of(list_first(&promise->askers), struct asker, node);
	char sentence[64];

	snprintf(sentence, sizeof(sentence), "%d others have asked for the same answer since", ASKERS_MAX);
	clients_refuse(promise->shelf->promises->clients, &first->to, "gone", sentence);
	asker_free(promise, first);
}

int promise_join(struct promise *promise, const struct address *to, const struct watch *watch)
{
	struct asker *asker = calloc(1, sizeof(*asker));

	if (!asker)
		return -ENOMEM;
	promise_leave(promise, to);
	if (promise->n_askers == ASKERS_MAX)
		make_room(promise);
	list_init(&asker->node);
	asker->to = *to;
	asker->to.promise = NULL;
	asker->stream = watch->stream;
	asker->input = watch->input;
	asker->calls = watch->calls;
	list_append(&promise->askers, &asker->node);
	promise->n_askers++;
	if (watch->stream) {
		output_repeat(promise, asker, watch->from);
		displays_repeat(promise, asker, watch->displays);
	}
	if (promise->answer) {
		promise_answer_all(promise);
		return 0;
	}
	if (watch->calls)
		calls_repeat(promise, asker);
	if (watch->input && promise->running && promise->running->asking)
		ask_send(promise, asker);
	return 0;
}

/* ---- while it runs ---- */

/* @sent: the result of sending to @asker. Returns whether it reads too slowly. */
static bool asker_lags(struct promise *promise, struct asker *asker, int sent)
{
	if (sent == CLIENT_E_GONE)
		asker_free(promise, asker);
	return sent == CLIENT_E_WAITS;
}

int promise_stream(struct promise *promise, enum promise_stream stream, uint64_t at, struct bytes data)
{
	struct asker *asker;
	bool waits = false;

	list_for_each (asker, &promise->askers, node)
		if (asker->stream)
			waits |= asker_lags(promise, asker, output_send(promise, asker, stream, at, data));
	return waits ? CLIENT_E_WAITS : 0;
}

int promise_display(struct promise *promise, const struct shown *shown)
{
	struct asker *asker;
	bool waits = false;

	list_for_each (asker, &promise->askers, node)
		if (asker->stream)
			waits |= asker_lags(promise, asker, display_send(promise, asker, shown));
	return waits ? CLIENT_E_WAITS : 0;
}

bool promise_has(const struct promise *promise, enum asking how)
{
	const struct asker *asker;

	list_for_each (asker, (struct list *)&promise->askers, node)
		if ((how == ASKING_STREAM && asker->stream) || (how == ASKING_INPUT && asker->input) ||
		    (how == ASKING_CALLS && asker->calls))
			return true;
	return false;
}

void promise_drop_disconnected(struct promise *promise)
{
	struct clients *clients = promise->shelf->promises->clients;
	struct asker *asker;

	list_for_each (asker, &promise->askers, node)
		if (!clients_there(clients, &asker->to))
			asker_free(promise, asker);
}

void promise_alive(struct promise *promise, const struct alive_event *alive)
{
	struct clients *clients = promise->shelf->promises->clients;
	struct asker *asker;

	list_for_each (asker, &promise->askers, node) {
		struct alive_event event = *alive;

		event.id = asker->to.id;
		if (asker->stream && !clients_wait(clients, &asker->to))
			(void)asker_lags(promise, asker,
					 clients_say(clients, &asker->to, &alive_event_schema, &event));
	}
}

void promise_ask(struct promise *promise, const struct ask_event *ask)
{
	struct asker *asker;

	list_for_each (asker, &promise->askers, node) {
		struct ask_event event = *ask;

		event.id = asker->to.id;
		if (asker->input && clients_say(promise->shelf->promises->clients, &asker->to, &ask_event_schema,
						&event) == CLIENT_E_GONE)
			asker_free(promise, asker);
	}
}

void promise_call(struct promise *promise, struct call *call)
{
	struct asker *asker;

	list_for_each (asker, &promise->askers, node)
		if (asker->calls && !call_send(promise, asker, call))
			asker_free(promise, asker);
}

void promise_cancel(struct promise *promise, uint64_t number, const struct address *but)
{
	struct clients *clients = promise->shelf->promises->clients;
	struct asker *asker;

	list_for_each (asker, &promise->askers, node) {
		const struct cancel_event event = {.id = asker->to.id, .number = number};

		if (!asker->calls || (but && address_same_request(&asker->to, but)))
			continue;
		if (clients_say(clients, &asker->to, &cancel_event_schema, &event) == CLIENT_E_GONE)
			asker_free(promise, asker);
	}
}

bool promise_waits(const struct promise *promise)
{
	struct asker *asker;

	list_for_each (asker, (struct list *)&promise->askers, node)
		if (asker->stream && clients_wait(promise->shelf->promises->clients, &asker->to))
			return true;
	return false;
}
