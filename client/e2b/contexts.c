/* Contexts: branches of a sandbox's session with variables of their own. */
#include "e2b.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define CONTEXTS_MAX 64

void context_free(struct context *context)
{
	free(context->id);
	free(context->session);
	free(context->language);
	free(context->cwd);
	free(context);
}

struct context *context_find(const struct sandbox *sandbox, const char *id)
{
	for (struct context *context = sandbox->contexts; context; context = context->next)
		if (strcmp(context->id, id) == 0)
			return context;
	return NULL;
}

const char *language_named(const char *given)
{
	if (!given || !*given || strcasecmp(given, "python") == 0)
		return "python";
	return strcasecmp(given, "bash") == 0 ? "bash" : NULL;
}

static json_t *context_document(const struct context *context)
{
	return json_pack("{s:s, s:s, s:s}", "id", context->id, "language", context->language, "cwd", context->cwd);
}

static void contexts_list_found(struct exchange *exchange)
{
	const struct sandbox *sandbox = sandbox_of(exchange);
	json_t *list = json_array();

	for (const struct context *context = sandbox->contexts; context; context = context->next)
		json_array_insert_new(list, 0, context_document(context));
	json_array_insert_new(
		list, 0, json_pack("{s:s, s:s, s:s}", "id", DEFAULT_CONTEXT, "language", "python", "cwd", HOME));
	answer_json(exchange, 200, list);
}

void contexts_list_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), contexts_list_found);
}

static struct context *context_new(struct sandbox *sandbox, const char *session, const json_t *asked)
{
	const char *cwd = json_string_value(json_object_get(asked, "cwd"));
	struct context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	context->session = strdup(session);
	context->id = strdup(session + strlen(sandbox->session) + 1);
	context->language = strdup(language_named(json_string_value(json_object_get(asked, "language"))));
	context->cwd = strdup(cwd ? cwd : HOME);
	if (!context->session || !context->id || !context->language || !context->cwd) {
		context_free(context);
		return NULL;
	}
	context->next = sandbox->contexts;
	sandbox->contexts = context;
	return context;
}

static void context_ready(struct exchange *exchange)
{
	const struct work *work = exchange->state;
	const struct context *context =
		context_find(work->sandbox, work->branch + strlen(work->sandbox->session) + 1);

	answer_json(exchange, 200, context ? context_document(context) : json_null());
}

static void context_branched(struct exchange *exchange)
{
	const struct work *work = exchange->state;
	const struct context *context = context_new(work->sandbox, work->branch, work->asked);
	_cleanup_(freep) char *code = NULL;
	json_t *given;

	if (!context || work->sandbox->dead) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	given = json_pack("{s:s}", "cwd", context->cwd);
	code = program_cell("context", given);
	json_decref(given);
	exchange_wait_any(exchange,
			  lair_exec(exchange->tenant->lair, &exchange->call,
				    &(struct lair_exec){.session = work->branch, .code = lair_text(code)}),
			  context_ready);
}

static void contexts_create_found(struct exchange *exchange)
{
	struct work *work = exchange->state;
	const char *language;
	unsigned char bytes[8];
	char purpose[2 * sizeof(bytes) + 1];
	size_t n = 0;

	if (!e2b_body(exchange, exchange_body(exchange), &work->asked))
		return;
	language = json_string_value(json_object_get(work->asked, "language"));
	for (const struct context *at = work->sandbox->contexts; at; at = at->next)
		n++;
	if (!language_named(language)) {
		answer_text(exchange, 400, "text/plain", lair_text("there are contexts for python and for bash"));
		return;
	}
	if (n >= CONTEXTS_MAX) {
		answer_header(exchange, "Retry-After", "5");
		answer_text(exchange, 429, "text/plain", lair_text("this sandbox has too many contexts"));
		return;
	}
	randombytes_buf(bytes, sizeof(bytes));
	(void)sodium_bin2hex(purpose, sizeof(purpose), bytes, sizeof(bytes));
	sandbox_branch(exchange, purpose, context_branched);
}

void contexts_create_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), contexts_create_found);
}

void no_context(struct exchange *exchange, const char *id)
{
	char sentence[LINE_SIZE];

	snprintf(sentence, sizeof(sentence), "Context %.200s not found", id);
	answer_text(exchange, 404, "text/plain", lair_text(sentence));
}

static void context_remove_found(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);
	const char *id = exchange_path(exchange, "context");
	struct context **at = &sandbox->contexts, *context;

	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	context = *at;
	if (!context) {
		no_context(exchange, id);
		return;
	}
	*at = context->next;
	sandbox_end_branch(sandbox, context->session);
	context_free(context);
	answer_json(exchange, 200, json_null());
}

void context_remove_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), context_remove_found);
}

static void context_restarted(struct exchange *exchange)
{
	if (lair_outcome(exchange->call))
		e2b_refuse(exchange);
	else
		answer_json(exchange, 200, json_null());
}

static void context_restart_found(struct exchange *exchange)
{
	const struct sandbox *sandbox = sandbox_of(exchange);
	const char *id = exchange_path(exchange, "context"), *session = sandbox->session;
	const struct context *context = context_find(sandbox, id);

	if (context)
		session = context->session;
	else if (strcmp(id, DEFAULT_CONTEXT) != 0) {
		no_context(exchange, id);
		return;
	}
	exchange_wait_any(exchange, lair_reset(exchange->tenant->lair, &exchange->call, session),
			  context_restarted);
}

void context_restart_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), context_restart_found);
}
