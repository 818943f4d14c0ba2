/* Functions of cells. Calls go to the servers; a call that asks first becomes a question to the client's person, or
 * a line in the result that says how to answer it. A cell whose request was answered early, with a handle, still
 * makes calls: its request stays in the server's list until the cell has ended. */
#include "functions.h"

#include "base/call_text.h"
#include "base/json.h"
#include "base/text.h"
#include "servers/offered.h"

#include <inttypes.h>
#include <stdio.h>

/* The first cell waits so long for servers; those that are later have their functions in a later cell. */
#define SERVERS_PATIENCE 20.0
/* Calls that ask come together, mostly; and a client that cannot ask gets its answer soon. */
#define GATHER 0.1
#define SHOWN_MAX ((size_t)1000)

/* ---- which there are ---- */

static void resume(struct request *request)
{
	void (*then)(struct request * request) = request->resume;

	request->resume = NULL;
	request_due(request, 0);
	then(request);
}

void functions_wait(struct request *request, void (*then)(struct request *request))
{
	struct servers *servers = request->engine->options.servers;

	if (servers)
		servers_start(servers);
	if (!servers || servers_settled(servers)) {
		then(request);
		return;
	}
	request->resume = then;
	request->on_due = resume;
	request_due(request, clock_seconds() + SERVERS_PATIENCE);
}

void functions_resume(void *userdata)
{
	struct engine *engine = userdata;
	struct request *request, *next;

	if (!servers_settled(engine->options.servers))
		return;
	for (request = engine->requests; request; request = next) {
		next = request->next;
		if (request->resume)
			resume(request);
	}
}

json_t *functions_instructions(const struct engine *engine)
{
	struct servers *servers = engine->options.servers;
	_cleanup_(freep) char *names = servers ? servers_names(servers) : NULL;

	if (!names || !*names)
		return json_string("");
	return json_sprintf(
		"Code can call functions of these servers as tools.SERVER.FUNCTION(name=value): %s. In the code, "
		"tools.find('words') lists functions and help(tools.SERVER.FUNCTION) explains one. Call many in "
		"one piece of code, and print only what matters.\n",
		names);
}

/* ---- calls ---- */

static struct request *answered_of(const struct engine *engine, const char *key)
{
	for (struct request *it = engine->requests; it; it = it->next)
		if (it->answered && it->key && strcmp(it->key, key) == 0)
			return it;
	return NULL;
}

/* The request that has the calls of this one's cell. */
static struct request *caller_of(const struct request *request)
{
	struct request *answered = request->key ? answered_of(request->engine, request->key) : NULL;

	return answered ? answered : (struct request *)request;
}

/* The request that waits for the result of this one's cell: this one, or one that came later with its handle. */
static const struct request *waiter_of(const struct request *request)
{
	for (const struct request *it = request->engine->requests; it; it = it->next)
		if (it->key && !it->answered && strcmp(it->key, request->key) == 0)
			return it;
	return request;
}

json_t *functions_asking(const struct request *request)
{
	json_t *asking = caller_of(request)->asking;

	return json_array_size(asking) > 0 ? asking : NULL;
}

static json_int_t number_of(const json_t *asking)
{
	return json_integer_value(json_object_get(asking, "number"));
}

/* A question to the client, about a call of the cell with that key. */
struct question {
	struct rpc_asked asked;
	json_int_t number;
	char key[];
};

/* It does not ask any more: nor does the client. */
static void asking_drop(struct request *request, uint64_t number)
{
	struct question *question;
	json_t *asking;
	size_t i;

	json_array_foreach(request->asking, i, asking)
	{
		if (number_of(asking) == (json_int_t)number) {
			json_array_remove(request->asking, i);
			break;
		}
	}
	list_for_each (question, &request->engine->asker.asked, asked.node) {
		if (question->number != (json_int_t)number || strcmp(question->key, request->key) != 0)
			continue;
		request_tell(waiter_of(request), rpc_withdraw(&question->asked, "it is answered"));
		free(question);
	}
}

void functions_forget(struct engine *engine)
{
	struct question *question;

	list_for_each (question, &engine->asker.asked, asked.node) {
		list_remove(&question->asked.node);
		free(question);
	}
}

static void on_call(struct lair_call *call, struct lair_calling *calling, void *userdata)
{
	struct request *request = userdata;

	(void)call;
	asking_drop(request, lair_calling_number(calling));
	offered_call(request->engine->offered, request, calling);
}

static void on_cancel(struct lair_call *call, uint64_t number, void *userdata)
{
	struct request *request = userdata;

	(void)call;
	asking_drop(request, number);
	offered_cancel(request->engine->offered, request, number);
}

/* ---- questions ---- */

static json_t *elicitation(const json_t *asking, bool modern)
{
	const char *arguments = json_string_value(json_object_get(asking, "arguments"));
	json_t *schema =
		json_pack("{s:s, s:{s:{s:s, s:s, s:b}}, s:[s]}", "type", "object", "properties", "approve", "type",
			  "boolean", "title", "Allow this call", "default", 1, "required", "approve");
	json_t *params = json_pack("{s:o, s:o}", "message",
				   json_sprintf("Code wants to call %s with %s. Allow it?",
						json_string_value(json_object_get(asking, "function")), arguments),
				   "requestedSchema", schema);

	if (modern)
		json_object_set_new(params, "mode", json_string("form"));
	return params;
}

static void ask_client(struct request *request, const json_t *asking)
{
	size_t size = strlen(request->key) + 1;
	struct question *question = calloc(1, sizeof(*question) + size);

	if (!question) {
		request->engine->error = -ENOMEM;
		return;
	}
	question->number = number_of(asking);
	memcpy(question->key, request->key, size);
	request_tell(waiter_of(request), rpc_ask(&request->engine->asker, &question->asked, "elicitation/create",
						 elicitation(asking, false)));
}

/* Requests that wait for this cell are answered soon. */
static void waiters_hurry(const struct engine *engine, const char *key)
{
	for (struct request *it = engine->requests; it; it = it->next)
		if (it->key && !it->answered && strcmp(it->key, key) == 0 && it->hurry)
			it->hurry(it, clock_seconds() + GATHER);
}

static void on_held(struct lair_call *call, const struct lair_waiting *waiting, void *userdata)
{
	struct request *request = userdata;
	_cleanup_(freep) char *arguments = call_arguments_text(waiting->arguments, SHOWN_MAX);
	json_t *asking;

	(void)call;
	asking = json_pack("{s:I, s:o, s:s}", "number", (json_int_t)waiting->number, "function",
			   json_text(waiting->function), "arguments", arguments ? arguments : "?");
	if (!request->asking)
		request->asking = json_array();
	json_array_append_new(request->asking, asking);
	if (request->elicits && !request->modern)
		ask_client(request, asking);
	else
		waiters_hurry(request->engine, request->key);
}

bool functions_elicits(const json_t *capabilities)
{
	const json_t *elicitation = json_object_get(capabilities, "elicitation");

	return json_is_object(elicitation) &&
	       (json_object_size(elicitation) == 0 || json_object_get(elicitation, "form"));
}

/* ---- answers ---- */

static void on_told(struct lair_call *call, void *userdata)
{
	(void)userdata;
	lair_call_free(call);
}

/* @response: {action, content}. To dismiss the question is no answer. Returns whether it is one. */
static bool answer_take(struct engine *engine, const char *key, uint64_t number, const json_t *response)
{
	const char *action = json_string_value(json_object_get(response, "action"));
	json_t *approve = json_object_get(json_object_get(response, "content"), "approve");
	struct lair_answer answer = {.key = key, .number = number};
	struct lair_call *call = NULL;

	if (!action || (strcmp(action, "accept") != 0 && strcmp(action, "decline") != 0))
		return false;
	answer.approve = strcmp(action, "accept") == 0 && json_is_true(approve);
	if (!answer.approve) {
		answer.error = "PermissionError";
		answer.text = "the call was refused by the user";
	}
	if (engine->lair && lair_answer_call(engine->lair, &call, &answer) == 0)
		lair_on_done(call, on_told, NULL);
	return true;
}

void functions_response(struct engine *engine, const struct rpc *rpc)
{
	struct rpc_asked *asked = rpc_answered(&engine->asker, json_object_get(rpc->document, "id"));
	struct question *question = asked ? container_of(asked, struct question, asked) : NULL;

	if (!question)
		return;
	/* If it is no answer, the result of the cell's request tells of the call. */
	if (!answer_take(engine, question->key, (uint64_t)question->number,
			 json_object_get(rpc->document, "result")))
		waiters_hurry(engine, question->key);
	free(question);
}

json_t *functions_input_required(const struct request *request, json_t *handle)
{
	json_t *asking = functions_asking(request), *requests, *one;
	char number[32];
	size_t i;

	if (!asking || !request->modern || !request->elicits)
		return NULL;
	requests = json_object();
	json_array_foreach(asking, i, one)
	{
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, number_of(one));
		json_object_set_new(
			requests, number,
			json_pack("{s:s, s:o}", "method", "elicitation/create", "params", elicitation(one, true)));
	}
	return json_pack("{s:s, s:o, s:O}", "resultType", "input_required", "inputRequests", requests,
			 "requestState", handle);
}

void functions_input_take(struct request *request, const char *key, const json_t *responses)
{
	const char *number;
	json_t *response;

	json_object_foreach((json_t *)responses, number, response)
	{
		(void)answer_take(request->engine, key, strtoull(number, NULL, 10), response);
	}
}

/* ---- cells ---- */

void functions_offer(struct request *request, struct lair_exec *exec)
{
	exec->functions = offered_functions(request->engine->offered, &exec->n_functions);
	exec->on_call = on_call;
	exec->on_cancel = on_cancel;
	exec->on_held = on_held;
}

void functions_attach(struct request *request, struct lair_attach *attach)
{
	if (answered_of(request->engine, attach->key))
		return;
	attach->on_call = on_call;
	attach->on_cancel = on_cancel;
	attach->on_held = on_held;
}

bool functions_keep(struct request *request)
{
	struct engine *engine = request->engine;

	/* Another one has the calls already. */
	if (!request->call || (request->key && answered_of(engine, request->key)))
		return false;
	request->answered = true;
	request->runs = false;
	request_due(request, 0);
	return true;
}

void functions_end(struct request *request)
{
	offered_end(request->engine->offered, request);
}
