/* Requests without an answer. Each is in its server's list until it is ended, and ended once. Its answer may
 * come at any time, so nothing else refers to it. */
#include "engine.h"

#include "functions.h"
#include "tool_result.h"
#include "versions.h"

struct request *request_new(struct engine *engine, json_t *id)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->engine = engine;
	request->id = json_incref(id);
	request->next = engine->requests;
	if (request->next)
		request->next->previous = request;
	engine->requests = request;
	engine->n_requests++;
	return request;
}

void request_drop(struct request *request)
{
	struct engine *engine = request->engine;

	if (request->previous)
		request->previous->next = request->next;
	else
		engine->requests = request->next;
	if (request->next)
		request->next->previous = request->previous;
	engine->n_requests--;
	request_due(request, 0);
	functions_end(request);
	lair_call_free(request->call);
	if (request->work_free)
		request->work_free(request->work);
	json_decref(request->id);
	json_decref(request->token);
	json_decref(request->arguments);
	json_decref(request->news);
	json_decref(request->state);
	json_decref(request->responses);
	json_decref(request->asking);
	free(request);
}

/* ---- ends ---- */

void request_answer(struct request *request, json_t *result)
{
	if (request->modern)
		versions_complete(result);
	engine_send(request->engine, rpc_result(request->id, result));
}

void request_reply(struct request *request, json_t *result)
{
	request_answer(request, result);
	request_drop(request);
}

void request_refuse(struct request *request, int code, const char *message, json_t *data)
{
	engine_send(request->engine, rpc_error(request->id, code, message, data));
	request_drop(request);
}

/* Whether the server would go on from a state that it has not given, or not lately. */
static bool state_is_none(const struct request *request, int error)
{
	return request->state &&
	       (error == LAIR_E_GONE || error == LAIR_E_NO_SESSION || error == LAIR_E_BAD_REQUEST);
}

void request_fail(struct request *request, int error, const char *sentence)
{
	if (state_is_none(request, error))
		request_refuse(request, RPC_INVALID_PARAMS, "requestState is none that this server knows", NULL);
	else if (request->tool)
		request_reply(request, result_failure(request, error, sentence));
	else
		request_refuse(request, RPC_INTERNAL, sentence, NULL);
}

void request_cancel(struct request *request)
{
	struct lair_call *call = NULL;

	if (!request->runs) {
		request_drop(request);
		return;
	}
	if (!request->cancelled && lair_cancel(request->engine->lair, &call, request->call) == 0)
		lair_call_free(call); /* the request waits for the end of the cell itself */
	request->cancelled = true;
	request_due(request, 0);
}

/* ---- the daemon ---- */

struct lair *request_lair(struct request *request)
{
	const char *sentence;
	struct lair *lair;
	int r;

	r = engine_connect(request->engine, &lair, true, &sentence);
	if (!r)
		return lair;
	request_fail(request, r, sentence);
	return NULL;
}

static void on_done(struct lair_call *call, void *userdata)
{
	struct request *request = userdata;

	request->call = NULL;
	request->runs = false;
	functions_end(request);
	if (request->cancelled || request->answered)
		request_drop(request);
	else if (lair_outcome(call) && !request->tolerant)
		request_fail(request, lair_outcome(call), lair_call_error(call));
	else
		request->then(request, call);
	lair_call_free(call);
}

void request_wait(struct request *request, int started, struct lair_call **callp, step *then)
{
	if (started) {
		request_fail(request, started, lair_error(request->engine->lair));
		return;
	}
	request->call = *callp;
	request->then = then;
	lair_on_done(*callp, on_done, request);
}
