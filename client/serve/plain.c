/* Requests of the simplest callers: /health, /openapi.json, /metrics and /execute. */
#include "doors.h"

#include "proto/paths.h"

#include "base/json.h"
#include "base/text.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

static void health_begin(struct exchange *exchange)
{
	answer_json(exchange, 200, json_pack("{s:s, s:s}", "status", "ok", "version", LAIR_VERSION));
}

static void openapi_begin(struct exchange *exchange)
{
	answer_json(exchange, 200, openapi_make(exchange->server));
}

/* ---- /execute ---- */

struct once {
	bool given;	     /* what the code reads */
	const char *session; /* in laird; NULL: a one-shot */
};

/* A one-shot has no name, so the audit log could not say whose it was: with tokens it is a session of a name of its
 * own, which is ended. */
static bool once_name(struct exchange *exchange, const char *key)
{
	struct once *once = exchange->state;
	char id[32];

	if (!*exchange->tenant->prefix || once->session)
		return true;
	if (key)
		snprintf(id, sizeof(id), "once-%.16s", key);
	else
		snprintf(id, sizeof(id), "once-%08x%08x", randombytes_random(), randombytes_random());
	once->session = exchange_session(exchange, id);
	return once->session;
}

static void once_end(struct exchange *exchange)
{
	const struct once *once = exchange->state;

	if (once->session)
		seat_end(exchange->tenant, once->session);
}

static void once_left(struct exchange *exchange)
{
	if (exchange->interrupts)
		once_end(exchange);
	cell_left(exchange);
}

/* A line for the cell: all that there is, and then its end. A cell reads the lines of an answer one by one. */
static void on_ask(struct lair_call *call, struct lair_text prompt, bool password, void *userdata)
{
	struct exchange *exchange = userdata;
	const json_t *input = json_object_get(exchange->json, "stdin");
	struct lair_text line = {.data = json_string_value(input), .size = json_string_length(input)};
	struct lair_call *answer = NULL;
	struct once *once = exchange->state;

	(void)prompt;
	(void)password;
	if (once->given || line.size == 0)
		line.data = NULL;
	else if (line.data[line.size - 1] == '\n')
		line.size--; /* it is not part of the last line */
	once->given = true;
	(void)lair_input(exchange->tenant->lair, &answer, call, line);
	(void)lair_call_free(answer);
}

static json_t *member(json_t *result, const char *name)
{
	json_t *value = json_object_get(result, name);

	return value ? json_incref(value) : json_null();
}

static void execute_done(struct exchange *exchange)
{
	const struct lair_result *result = lair_outcome(exchange->call) ? NULL : lair_result(exchange->call);
	json_t *document, *told;

	once_end(exchange);
	if (!result) {
		exchange_refuse(exchange);
		return;
	}
	document = result_document(exchange, result);
	told = json_pack("{s:o, s:o, s:i, s:f, s:o, s:o, s:o, s:o, s:b, s:o}", "stdout", member(document, "stdout"),
			 "stderr", member(document, "stderr"), "exit_code", result->returncode, "time_ms",
			 result->duration_ms, "text", member(document, "text"), "error", member(document, "error"),
			 "cause", member(document, "cause"), "displays", member(document, "displays"), "truncated",
			 (int)(result->out_dropped || result->err_dropped), "notes", member(document, "notes"));
	json_decref(document);
	answer_json(exchange, 200, told);
}

static void execute_begin(struct exchange *exchange)
{
	const json_t *code = json_object_get(exchange->json, "code");
	struct once *once = exchange->state;
	struct lair *lair;
	char key[KEY_SIZE];
	bool keyed, bad;
	struct lair_exec exec = {
		.code = {.data = json_string_value(code), .size = json_string_length(code)},
		.timeout = exchange_number(exchange, "timeout"),
		.on_ask = json_object_get(exchange->json, "stdin") ? on_ask : NULL,
		.userdata = exchange,
	};

	keyed = exchange_key(exchange, key, &bad);
	if (bad || !profile_of(exchange, exchange_string(exchange, "profile"), &exec.profile))
		return;
	lair = exchange_lair(exchange);
	if (!lair)
		return;
	exec.key = keyed ? key : NULL;
	exchange->interrupts = !keyed;
	/* It begins a second time if the sessions of the tenant have to be counted. */
	if (!exchange->state)
		exchange->state = once = calloc(1, sizeof(*once));
	exchange->free_state = free;
	if (!once) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	if (!once_name(exchange, exec.key) || (once->session && !session_admitted(exchange, once->session)))
		return;
	exchange->on_gone = once_left;
	exec.session = once->session;
	exchange_wait_any(exchange, lair_exec(lair, &exchange->call, &exec), execute_done);
}

static const struct route routes[] = {
	{.method = "GET",
	 .path = "/health",
	 .begin = health_begin,
	 .summary = "Whether the server is there.",
	 .answer = "Health",
	 .flags = ROUTE_OPEN | ROUTE_ASIDE},
	{.method = "GET",
	 .path = "/openapi.json",
	 .begin = openapi_begin,
	 .summary = "This description.",
	 .answer = "OpenAPI",
	 .flags = ROUTE_OPEN | ROUTE_ASIDE},
	{.method = "GET",
	 .path = "/metrics",
	 .begin = metrics_begin,
	 .summary = "Figures for Prometheus, in its text format.",
	 .flags = ROUTE_ASIDE,
	 .media = "text/plain"},
	{.method = "POST",
	 .path = "/execute",
	 .begin = execute_begin,
	 .summary = "Run code in a fresh session, which ends with it.",
	 .body = "Execute",
	 .answer = "Executed",
	 .flags = ROUTE_KEY},
};

const struct door plain_door = {.name = "plain", .routes = routes, .n_routes = ARRAY_SIZE(routes)};
