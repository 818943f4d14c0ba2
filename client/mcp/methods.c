/* Messages of a client: each line is a request, a notification or an error. If it needs an answer, it gets one. */
#include "engine.h"
#include "functions.h"
#include "resources.h"
#include "tools.h"
#include "versions.h"

#define REQUESTS_MAX 1000
#define PROMPTS_TTL_MS 3600000

/* ---- methods ---- */

static void ping(struct request *request)
{
	request_reply(request, json_object());
}

/* There are none. Clients ask nevertheless, and may remember the answer. */
static void prompts_list(struct request *request)
{
	json_t *cursor = json_object_get(request->arguments, "cursor"), *result;

	if (cursor && !json_is_null(cursor)) {
		request_refuse(request, RPC_INVALID_PARAMS, "there is no page of that cursor", NULL);
		return;
	}
	result = json_pack("{s:[]}", "prompts");
	versions_cacheable(request, result, PROMPTS_TTL_MS, true);
	request_reply(request, result);
}

static void prompts_get(struct request *request)
{
	request_refuse(request, RPC_INVALID_PARAMS, "there is no such prompt", NULL);
}

/* Every message goes to stderr, whatever the level. */
static void logging_set_level(struct request *request)
{
	static const char *const levels[] = {"debug", "info",	  "notice", "warning",
					     "error", "critical", "alert",  "emergency"};
	const char *level = json_text_value(json_object_get(request->arguments, "level"));

	for (size_t i = 0; level && i < ARRAY_SIZE(levels); i++) {
		if (strcmp(level, levels[i]) == 0) {
			request_reply(request, json_object());
			return;
		}
	}
	request_refuse(request, RPC_INVALID_PARAMS, "there is no such level", NULL);
}

/* The server never sends what a client can listen for. So the acknowledgement is empty, and the request stays
 * open. */
static void subscriptions_listen(struct request *request)
{
	request_tell(request, rpc_notification("notifications/subscriptions/acknowledged",
					       json_pack("{s:{s:O}, s:{}}", "_meta",
							 "io.modelcontextprotocol/subscriptionId", request->id,
							 "notifications")));
}

enum { LEGACY = 1, MODERN = 2 };

static const struct method {
	const char *name;
	unsigned eras;
	void (*run)(struct request *request);
} methods[] = {
	{"initialize", LEGACY, versions_initialize},
	{"server/discover", MODERN, versions_discover},
	{"ping", LEGACY, ping},
	{"logging/setLevel", LEGACY, logging_set_level},
	{"tools/list", LEGACY | MODERN, tools_list},
	{"tools/call", LEGACY | MODERN, tools_call},
	{"resources/list", LEGACY | MODERN, resources_list},
	{"resources/templates/list", LEGACY | MODERN, resources_templates},
	{"resources/read", LEGACY | MODERN, resources_read},
	{"prompts/list", LEGACY | MODERN, prompts_list},
	{"prompts/get", LEGACY | MODERN, prompts_get},
	{"subscriptions/listen", MODERN, subscriptions_listen},
};

static const struct method *method_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

/* ---- messages ---- */

static struct request *request_find(struct engine *engine, const json_t *id)
{
	for (struct request *request = engine->requests; request; request = request->next)
		if (!request->cancelled && !request->answered && json_equal(request->id, id))
			return request;
	return NULL;
}

static void take_notification(struct engine *engine, const struct rpc *rpc)
{
	json_t *id = rpc_id(json_object_get(rpc->params, "requestId"));
	struct request *request = id ? request_find(engine, id) : NULL;

	if (request && strcmp(rpc->method, "notifications/cancelled") == 0)
		request_cancel(request);
	json_decref(id);
}

static json_t *token_of(const struct rpc *rpc)
{
	return json_object_get(json_object_get(rpc->params, "_meta"), "progressToken");
}

static bool token_valid(const struct rpc *rpc)
{
	json_t *token = rpc_id(token_of(rpc));
	bool valid = token || !token_of(rpc) || json_is_null(token_of(rpc));

	json_decref(token);
	return valid;
}

/* Checks a request before its method runs. Returns 0, or the code of an error, with its message and data. */
static int request_check(struct engine *engine, const struct rpc *rpc, const struct method *method,
			 const char **messagep, json_t **datap)
{
	bool stateless = versions_modern(rpc->params);
	int code = stateless ? versions_check(rpc->params, messagep, datap) : 0;

	if (code)
		return code;
	if (!method || (stateless && !(method->eras & MODERN))) {
		*messagep = "there is no such method";
		return RPC_NO_METHOD;
	}
	if (!stateless && !(method->eras & LEGACY)) {
		*messagep = "this method wants the protocol version in _meta";
		return RPC_INVALID_PARAMS;
	}
	if (!token_valid(rpc)) {
		*messagep = "progressToken must be a string or an integer";
		return RPC_INVALID_PARAMS;
	}
	if (request_find(engine, rpc->id)) {
		*messagep = "there is a request of that id without an answer";
		return RPC_INVALID_REQUEST;
	}
	if (engine->n_requests >= REQUESTS_MAX) {
		*messagep = "there are too many requests without an answer";
		return RPC_INTERNAL;
	}
	return 0;
}

static void take_request(struct engine *engine, const struct rpc *rpc)
{
	const struct method *method = method_find(rpc->method);
	struct request *request;
	const char *message;
	json_t *data = NULL;
	int code;

	code = request_check(engine, rpc, method, &message, &data);
	if (code) {
		engine_send(engine, rpc_error(rpc->id, code, message, data));
		return;
	}
	request = request_new(engine, rpc->id);
	if (!request) {
		engine->error = -ENOMEM;
		return;
	}
	request->modern = versions_modern(rpc->params);
	request->elicits = versions_elicits(engine, rpc->params);
	request->state = json_incref(json_object_get(rpc->params, "requestState"));
	request->responses = json_incref(json_object_get(rpc->params, "inputResponses"));
	request->token = rpc_id(token_of(rpc));
	request->arguments = json_incref(rpc->params);
	method->run(request);
}

void engine_take(struct engine *engine, const struct rpc *rpc)
{
	if (rpc->kind == RPC_REQUEST)
		take_request(engine, rpc);
	else if (rpc->kind == RPC_NOTIFICATION)
		take_notification(engine, rpc);
	else
		functions_response(engine, rpc);
}

void engine_line(struct engine *engine, struct lair_text line)
{
	struct rpc rpc;
	json_t *error;

	if (rpc_blank(line))
		return;
	error = rpc_read(&rpc, line, false);
	if (error)
		engine_send(engine, error);
	else
		engine_take(engine, &rpc);
	rpc_deinit(&rpc);
}
