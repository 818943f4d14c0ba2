/* The calls that cells make of functions of this program. Each is in the list of its exec from its first event
 * until the daemon has taken its answer. After a new connection the daemon sends open calls once more; a call in
 * the list is not given to the program again, and its answer, if there is one, is a request that resume.c sends
 * again. */
#include "calling.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the list ---- */

static struct lair_calling *calling_find(const struct lair_call *call, uint64_t number)
{
	struct lair_calling *calling = call->callings;

	while (calling && calling->number != number)
		calling = calling->next;
	return calling;
}

/* Afterwards it may be gone. */
static void calling_unlink(struct lair_calling *calling)
{
	struct lair_calling **place = &calling->call->callings;

	while (*place != calling)
		place = &(*place)->next;
	*place = calling->next;
	calling->call = NULL;
	calling->next = NULL;
	calling_leave(calling);
}

/* Returns whether the program still had it. */
static bool calling_cancel(struct lair_calling *calling)
{
	bool had;

	pthread_mutex_lock(&calling->queue->lock);
	had = !calling->left;
	calling->cancelled = true;
	pthread_mutex_unlock(&calling->queue->lock);
	return had;
}

void callings_end(struct lair_call *call)
{
	while (call->callings) {
		(void)calling_cancel(call->callings);
		calling_unlink(call->callings);
	}
	free(call->held);
	free(call->cell_name);
	call->cell_name = NULL;
	call->held = NULL;
	call->n_held = 0;
}

/* ---- calls that ask ---- */

static bool held_remove(struct lair_call *call, uint64_t number)
{
	for (size_t i = 0; i < call->n_held; i++) {
		if (call->held[i] != number)
			continue;
		call->held[i] = call->held[--call->n_held];
		return true;
	}
	return false;
}

/* Whether it is new. */
static bool held_add(struct lair_call *call, uint64_t number)
{
	uint64_t *grown;

	for (size_t i = 0; i < call->n_held; i++)
		if (call->held[i] == number)
			return false;
	grown = reallocarray(call->held, call->n_held + 1, sizeof(*grown));
	if (!grown)
		return false;
	call->held = grown;
	call->held[call->n_held++] = number;
	return true;
}

/* ---- events ---- */

/* Which cell it is: that of an exec or attach of this handle. */
static void cell_of(struct answer_call_request *request, const struct lair_call *exec)
{
	struct wire_frame frame;
	struct wire_fault fault;
	struct attach_request attach;
	struct exec_request asked;

	if (wire_open(&frame, wire_bytes(&exec->request)))
		return;
	if (exec->asked == &exec_request_schema && !wire_decode(&asked, exec->asked, frame.body, &fault)) {
		request->of = asked.key;
		request->session = asked.session;
	} else if (exec->asked == &attach_request_schema &&
		   !wire_decode(&attach, exec->asked, frame.body, &fault)) {
		request->of = attach.key;
		request->session = attach.session;
		request->cell = attach.cell;
	}
}

/* The same over every connection. */
static const char *cell_name(struct lair_call *call)
{
	struct answer_call_request cell = {.id = 0};
	struct bytes key, session;
	int n;

	if (call->cell_name)
		return call->cell_name;
	cell_of(&cell, call);
	key = cell.of;
	session = cell.session;
	if (key.data)
		n = asprintf(&call->cell_name, "%.*s", (int)key.size, key.data);
	else
		n = asprintf(&call->cell_name, "%.*s-%" PRIu64, (int)session.size, session.data, cell.cell);
	if (n < 0)
		call->cell_name = NULL;
	return call->cell_name;
}

/* Its users are the list and the program. */
static struct lair_calling *calling_add(struct lair_call *call, const struct call_event *event)
{
	const char *name = cell_name(call);
	struct lair_calling *calling = name ? calling_new(call->lair->queue, event) : NULL;

	if (!calling)
		return NULL;
	if (asprintf(&calling->key, "%s/%" PRIu64, name, event->number) < 0) {
		calling->key = NULL;
		calling_leave(calling);
		return NULL;
	}
	calling->call = call;
	calling->next = call->callings;
	call->callings = calling;
	calling_use(calling);
	return calling;
}

/* Without memory for it, it is not done. It comes again with the next connection. */
void calling_on_call(struct lair_call *call, struct bytes body)
{
	struct lair_calling *calling;
	struct call_event event;
	struct wire_fault fault;

	if (wire_decode_known(&event, &call_event_schema, body, &fault) || calling_find(call, event.number))
		return;
	(void)held_remove(call, event.number);
	if (!call->forgotten && !call->exec.on_call)
		return; /* another program answers it */
	calling = calling_add(call, &event);
	if (!calling)
		return;
	if (!call->forgotten)
		call->exec.on_call(call, calling, call->exec.userdata);
	else if (lair_raise(calling, NULL, "the program that offers this function does not wait for this cell"))
		lair_calling_free(calling);
}

void calling_on_held(struct lair_call *call, struct bytes body)
{
	struct lair_waiting waiting = {.state = lair_text("asks")};
	struct answer_call_request cell = {.id = 0};
	struct held_event event;
	struct wire_fault fault;

	if (!call->exec.on_held || wire_decode_known(&event, &held_event_schema, body, &fault) ||
	    !held_add(call, event.number))
		return;
	cell_of(&cell, call);
	waiting.session = text_from(cell.session);
	waiting.key = text_from(cell.of);
	waiting.cell = cell.cell;
	waiting.number = event.number;
	waiting.function = text_from(event.function);
	waiting.arguments = text_from(event.arguments);
	waiting.bytes = event.arguments.size;
	waiting.text = text_from(event.text);
	call->exec.on_held(call, &waiting, call->exec.userdata);
}

void calling_on_cancel(struct lair_call *call, struct bytes body)
{
	struct cancel_event event;
	struct wire_fault fault;
	struct lair_calling *calling;
	bool told;

	if (wire_decode_known(&event, &cancel_event_schema, body, &fault))
		return;
	told = held_remove(call, event.number);
	calling = calling_find(call, event.number);
	if (calling) {
		told |= calling_cancel(calling);
		calling_unlink(calling);
	}
	if (told && call->exec.on_cancel)
		call->exec.on_cancel(call, event.number, call->exec.userdata);
}

/* ---- answers ---- */

static void give(struct lair *lair, struct giving *giving);

/* The cell gets an error in the place of what the daemon does not take. */
static void give_instead(struct lair *lair, struct giving *giving, const char *why)
{
	const char *what = giving->hold ? "be held" : "be answered";

	free(giving->error);
	free(giving->text);
	giving->error = strdup("ValueError");
	if (asprintf(&giving->text, "%s could not %s: %s", giving->calling->function, what, why) < 0)
		giving->text = NULL;
	msgpack_sbuffer_clear(&giving->value);
	giving->hold = false;
	giving->instead = true;
	if (giving->error && giving->text)
		give(lair, giving);
	else
		giving_free(giving);
}

static void on_given(struct lair_call *request, void *userdata)
{
	struct giving *giving = userdata;
	struct lair_calling *calling = giving->calling;
	int outcome = lair_outcome(request);
	bool refused =
		outcome > 0 && outcome != LAIR_E_GONE && outcome != LAIR_E_LOST && outcome != LAIR_E_PROTOCOL;

	if (refused && !giving->instead && calling->call) {
		give_instead(request->lair, giving, lair_call_error(request));
	} else {
		if (calling->call && (outcome == LAIR_E_GONE || (outcome == 0 && !giving->hold))) {
			(void)calling_cancel(calling);
			calling_unlink(calling);
		}
		giving_free(giving);
	}
	lair_call_free(request);
}

/* Whether the daemon could read it. */
static bool legible(const struct wire_schema *schema, const void *request)
{
	msgpack_sbuffer buffer;
	struct wire_frame frame;
	bool fit;

	msgpack_sbuffer_init(&buffer);
	fit = !wire_encode(&buffer, schema, request) && !wire_open(&frame, wire_bytes(&buffer));
	msgpack_sbuffer_destroy(&buffer);
	return fit;
}

/* Returns -EAGAIN if it has to wait. Else it is taken over. */
static int try_to_give(struct lair *lair, struct giving *giving)
{
	struct return_request request = {
		.exec = giving->calling->call->id,
		.number = giving->calling->number,
		.value = wire_bytes(&giving->value),
		.error = bytes_of(giving->error),
		.text = bytes_of(giving->text),
		.hold = giving->hold,
	};
	struct lair_call *sent = NULL;
	int r;

	if (giving->value.size == 0)
		request.value.data = NULL;
	if (!legible(&return_request_schema, &request)) {
		give_instead(lair, giving, "the value is nested too deeply, or has too many parts");
		return 0;
	}
	r = call_start(&sent, lair, &return_request_schema, &request, &empty_reply_schema);
	if (r == -EAGAIN)
		return r;
	if (!r) {
		sent->own = true;
		lair_on_done(sent, on_given, giving);
	} else if (r == LAIR_E_TOO_LARGE && !giving->instead) {
		give_instead(lair, giving, lair->error);
	} else {
		giving_free(giving);
	}
	return 0;
}

static void give(struct lair *lair, struct giving *giving)
{
	if (!giving->calling->call)
		giving_free(giving);
	else if (try_to_give(lair, giving))
		answer_queue_put_back(lair->queue, giving);
}

void answer_queue_flush(struct lair *lair)
{
	struct giving *giving;
	int r = 0;

	while (!r && lair->queue && (giving = answer_queue_take(lair->queue))) {
		if (!giving->calling->call) {
			giving_free(giving);
			continue;
		}
		r = try_to_give(lair, giving);
		if (r)
			answer_queue_put_back(lair->queue, giving);
	}
}

/* ---- answers by other programs ---- */

int lair_calls(struct lair *lair, struct lair_call **callp, const char *session)
{
	struct calls_request request = {.session = bytes_of(session)};

	return call_start(callp, lair, &calls_request_schema, &request, &calls_reply_schema);
}

int lair_watch_calls(struct lair *lair, struct lair_call **callp, uint64_t seen, double seconds)
{
	struct watch_calls_request request = {.seen = seen, .wait = seconds};

	return call_start(callp, lair, &watch_calls_request_schema, &request, &watch_calls_reply_schema);
}

int lair_answer_call(struct lair *lair, struct lair_call **callp, const struct lair_answer *answer)
{
	struct answer_call_request request = {
		.session = bytes_of(answer->session),
		.of = bytes_of(answer->key),
		.cell = answer->cell,
		.number = answer->number,
		.approve = answer->approve,
		.error = bytes_of(answer->error),
		.text = bytes_of(answer->text),
	};
	msgpack_sbuffer value;
	int r = 0;

	if (answer->exec)
		cell_of(&request, answer->exec);
	msgpack_sbuffer_init(&value);
	if (answer->value.data)
		r = json_pack_text(&value, answer->value);
	request.value = wire_bytes(&value);
	if (r)
		lair_fail(lair, r, r == -EINVAL ? "the answer is no JSON" : "out of memory");
	else if (!legible(&answer_call_request_schema, &request))
		r = lair_fail(lair, -EINVAL, "the answer is nested too deeply, or has too many parts");
	else
		r = call_start(callp, lair, &answer_call_request_schema, &request, &empty_reply_schema);
	msgpack_sbuffer_destroy(&value);
	return r;
}
