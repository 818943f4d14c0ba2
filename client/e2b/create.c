/* A sandbox is made: a session, and the branch of which its others are made. */
#include "e2b.h"

#include "serve/tokens.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define SANDBOXES_MAX 4096

static void create_done(struct exchange *exchange)
{
	answer_json(exchange, 201, sandbox_document(sandbox_of(exchange)));
}

static void create_based(struct exchange *exchange)
{
	/* Without a branch there are neither contexts nor commands; whoever asks for them is told why. */
	sandbox_of(exchange)->based = branch_is_there(exchange->call);
	create_done(exchange);
}

static void create_fill(struct sandbox *sandbox, const json_t *asked)
{
	json_t *metadata = json_object_get(asked, "metadata"), *envs = json_object_get(asked, "envVars");

	if (json_is_object(metadata))
		json_object_update(sandbox->metadata, metadata);
	if (json_is_object(envs))
		json_object_update(sandbox->envs, envs);
	sandbox->pauses = json_is_true(json_object_get(asked, "autoPause"));
	sandbox->ends = sandbox->started + timeout_asked(asked, TIMEOUT_DEFAULT);
}

static const char *template_of(const json_t *asked)
{
	const char *template = json_string_value(json_object_get(asked, "templateID"));

	return template && *template ? template : TEMPLATE;
}

/* E2B's own templates mean the default profile. */
static bool template_is_usual(const char *template)
{
	return strcmp(template, "base") == 0 || strncmp(template, "code-interpreter", 16) == 0;
}

bool template_profile(struct exchange *exchange, const char *template, const char **profilep)
{
	if (!profile_of(exchange, template_is_usual(template) ? NULL : template, profilep))
		return false;
	if (!*profilep)
		*profilep = LAIR_WORKBENCH;
	return true;
}

static void create_opened(struct exchange *exchange)
{
	struct work *work = exchange->state;
	const char *template = template_of(work->asked);
	struct sandbox *sandbox;

	if (lair_outcome(exchange->call) == LAIR_E_BAD_REQUEST && !template_is_usual(template)) {
		answer_problem(exchange, 404, "not_found", "template '%.80s' not found", template);
		return;
	}
	if (lair_outcome(exchange->call)) {
		exchange_refuse(exchange);
		return;
	}
	sandbox = sandbox_find(exchange, work->branch);
	if (!sandbox) {
		sandbox = sandbox_new(exchange, work->branch, template);
		if (!sandbox) {
			answer_error(exchange, -ENOMEM, "out of memory");
			return;
		}
		create_fill(sandbox, work->asked);
	}
	sandbox_learn(sandbox, lair_session(exchange->call));
	work_take(exchange, sandbox);
	exchange->call = lair_call_free(exchange->call);
	exchange_wait_any(exchange, sandbox_base(exchange, sandbox), create_based);
}

/* One that was asked for with the same key has the same id. */
static void id_make(const struct exchange *exchange, const char *key, char id[static ID_SIZE])
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
	unsigned char bytes[20];
	const char *name = exchange->tenant->name;

	if (key)
		(void)crypto_generichash(bytes, sizeof(bytes), (const unsigned char *)key, strlen(key),
					 *name ? (const unsigned char *)name : NULL, MIN(strlen(name), (size_t)64));
	else
		randombytes_buf(bytes, sizeof(bytes));
	id[0] = 'i';
	for (size_t i = 1; i < sizeof(bytes); i++)
		id[i] = letters[bytes[i] % 32];
	id[sizeof(bytes)] = '\0';
}

void create_begin(struct exchange *exchange)
{
	/* It begins a second time if the sessions of the tenant have to be counted. */
	struct work *work = exchange->state ? exchange->state : work_new(exchange, sizeof(*work));
	const char *session, *template, *profile = NULL;
	char key[KEY_SIZE], id[ID_SIZE];
	struct lair *lair;
	bool keyed, bad;
	size_t n = 0;

	if (!work || (!work->asked && !e2b_body(exchange, exchange_body(exchange), &work->asked)))
		return;
	for (const struct sandbox *at = e2b_of(exchange->server)->sandboxes; at; at = at->next)
		n++;
	template = template_of(work->asked);
	keyed = exchange_key(exchange, key, &bad);
	if (bad || !template_profile(exchange, template, &profile))
		return;
	if (n >= SANDBOXES_MAX) {
		answer_header(exchange, "Retry-After", "5");
		answer_problem(exchange, 429, "limit", "there are %d sandboxes already", SANDBOXES_MAX);
		return;
	}
	if (is_fixed_port(exchange->server))
		snprintf(id, sizeof(id), DEBUG_ID);
	else
		id_make(exchange, keyed ? key : NULL, id);
	if (!work->branch)
		work->branch = strdup(id);
	session = exchange_session(exchange, work->branch ? work->branch : id);
	if (session && !session_admitted(exchange, session))
		return;
	lair = session ? exchange_lair(exchange) : NULL;
	if (lair && work->branch)
		exchange_wait_any(exchange, lair_open(lair, &exchange->call, session, profile), create_opened);
	else if (lair)
		answer_error(exchange, -ENOMEM, "out of memory");
}
