/* Cells: run one, and its result as a document or as events. */
#include "doors.h"

#include "json.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIVE_SECONDS 15.0

bool profile_of(struct exchange *exchange, const char *profile, const char **profilep)
{
	const struct tenant *tenant = exchange->tenant;

	/* The first that it may name is what it gets if it names none. */
	*profilep = profile || !tenant->profiles ? profile : tenant->profiles[0];
	if (!profile || tenant_may(tenant, profile))
		return true;
	answer_problem(exchange, 403, "denied", "this token is not for the profile \"%.80s\"", profile);
	return false;
}

json_t *result_document(const struct exchange *exchange, const struct lair_result *result)
{
	json_t *document = json_result(result);

	json_object_set_new(document, "session", json_text(tenant_own(exchange->tenant, result->session)));
	return document;
}

void cell_left(struct exchange *exchange)
{
	struct lair_call *call = NULL;

	if (!exchange->interrupts || !exchange->call || lair_outcome(exchange->call) != -EINPROGRESS)
		return;
	(void)lair_cancel(exchange->tenant->lair, &call, exchange->call);
	(void)lair_call_free(call);
}

/* ---- an exec ---- */

static void exec_done(struct exchange *exchange)
{
	answer_json(exchange, 200, result_document(exchange, lair_result(exchange->call)));
}

static void exec_detached(struct exchange *exchange)
{
	const struct lair_detached *detached = lair_detached(exchange->call);

	answer_json(exchange, 200,
		    json_pack("{s:o, s:o}", "key", json_text(detached->key), "cell",
			      detached->cell ? json_integer((json_int_t)detached->cell) : json_null()));
}

/* NAME=value of each, ended by NULL; one block. NULL without memory, or after *badp. */
static char **environment_of(const json_t *env, bool *badp)
{
	size_t n = json_object_size(env), size = (n + 1) * sizeof(char *);
	const char *name;
	json_t *value;
	char **list, *at;

	*badp = false;
	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		*badp = *badp || !json_is_string(value) || !*name || strchr(name, '=');
		size += strlen(name) + json_string_length(value) + 2;
	}
	list = *badp ? NULL : calloc(1, size);
	if (!list)
		return NULL;
	at = (char *)(list + n + 1);
	n = 0;
	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		list[n++] = at;
		at += sprintf(at, "%s=%s", name, json_string_value(value)) + 1;
	}
	return list;
}

static bool exec_take(struct exchange *exchange, struct lair_exec *exec)
{
	const json_t *code = json_object_get(exchange->json, "code");

	*exec = (struct lair_exec){
		.code = {.data = json_string_value(code), .size = json_string_length(code)},
		.timeout = exchange_number(exchange, "timeout"),
		.figure = exchange_string(exchange, "figure"),
		.values = exchange_flag(exchange, "values"),
		.reload = exchange_flag(exchange, "reload"),
		.again = exchange_flag(exchange, "again"),
		.detach = exchange_flag(exchange, "detach"),
		.directory = exchange_string(exchange, "directory"),
		.birth = (uint64_t)exchange_number(exchange, "birth"),
		.userdata = exchange,
	};
	exec->session = exchange_session(exchange, exchange_path(exchange, "id"));
	return exec->session && profile_of(exchange, exchange_string(exchange, "profile"), &exec->profile);
}

void exec_begin(struct exchange *exchange)
{
	_cleanup_(freep) char **env = NULL;
	struct lair_exec exec;
	struct lair *lair;
	char key[KEY_SIZE];
	bool keyed, bad;

	keyed = exchange_key(exchange, key, &bad);
	if (bad || !exec_take(exchange, &exec))
		return;
	env = environment_of(json_object_get(exchange->json, "env"), &bad);
	if (bad) {
		answer_problem(exchange, 400, "bad_request", "env: expected names with strings as their values");
		return;
	}
	lair = exchange_lair(exchange);
	if (!lair)
		return;
	exec.env = (const char *const *)env;
	exec.key = keyed ? key : NULL;
	exchange->interrupts = !keyed;
	exchange->on_gone = exec.detach ? NULL : cell_left;
	exchange_wait(exchange, lair_exec(lair, &exchange->call, &exec), exec.detach ? exec_detached : exec_done);
}
