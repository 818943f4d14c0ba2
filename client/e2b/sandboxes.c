/* Sandboxes: only this file knows what a sandbox of E2B has and a session has not, such as metadata and its end. */
#include "e2b.h"

#include "serve/tokens.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct e2b *e2b_of(const struct server *server)
{
	return server->doors.e2b;
}

double wall_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- life ---- */

static void sandbox_free(struct sandbox *sandbox)
{
	for (struct context *context; (context = sandbox->contexts);) {
		sandbox->contexts = context->next;
		context_free(context);
	}
	json_decref(sandbox->metadata);
	json_decref(sandbox->envs);
	json_decref(sandbox->marks);
	free(sandbox->workspace);
	free(sandbox->template);
	free(sandbox->session);
	free(sandbox->id);
	free(sandbox);
}

void sandbox_put(struct sandbox *sandbox)
{
	if (--sandbox->users == 0)
		sandbox_free(sandbox);
}

void sandbox_token(const struct tenant *tenant, const char *id, char token[static ACCESS_SIZE])
{
	unsigned char hash[crypto_generichash_BYTES];

	(void)crypto_generichash(hash, sizeof(hash), (const unsigned char *)id, strlen(id),
				 tenant->token ? tenant->token->hash : NULL, tenant->token ? TOKEN_HASH_SIZE : 0);
	(void)sodium_bin2hex(token, ACCESS_SIZE, hash, sizeof(hash));
}

struct sandbox *sandbox_new(struct exchange *exchange, const char *id, const char *template)
{
	struct e2b *e2b = e2b_of(exchange->server);
	struct sandbox *sandbox = calloc(1, sizeof(*sandbox));

	if (!sandbox)
		return NULL;
	sandbox->users = 1;
	sandbox->tenant = exchange->tenant;
	sandbox->id = strdup(id);
	sandbox->template = strdup(template);
	sandbox->metadata = json_object();
	sandbox->envs = json_object();
	if (asprintf(&sandbox->session, "%s%s", exchange->tenant->prefix, id) < 0)
		sandbox->session = NULL;
	if (!sandbox->id || !sandbox->template || !sandbox->session) {
		sandbox_free(sandbox);
		return NULL;
	}
	sandbox->started = wall_now();
	sandbox->stays = server_now() + STAY_SECONDS;
	sandbox_token(exchange->tenant, id, sandbox->token);
	sandbox->next = e2b->sandboxes;
	e2b->sandboxes = sandbox;
	return sandbox;
}

void sandbox_drop(struct server *server, struct sandbox *sandbox)
{
	struct sandbox **at = &e2b_of(server)->sandboxes;

	while (*at && *at != sandbox)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = sandbox->next;
	sandbox->dead = true;
	processes_drop(sandbox);
	for (struct exchange *exchange = server->exchanges; exchange; exchange = exchange->next)
		if (exchange->door == &e2b_door && exchange->streaming && sandbox_of(exchange) == sandbox)
			stream_break(exchange);
	sandbox_put(sandbox);
}

struct sandbox *sandbox_find(const struct exchange *exchange, const char *id)
{
	for (struct sandbox *sandbox = e2b_of(exchange->server)->sandboxes; sandbox; sandbox = sandbox->next)
		if (sandbox->tenant == exchange->tenant && strcmp(sandbox->id, id) == 0)
			return sandbox;
	return NULL;
}

void sandbox_learn(struct sandbox *sandbox, const struct lair_session *session)
{
	sandbox->birth = session->birth;
	sandbox->memory = session->memory_limit;
	sandbox->disk = session->disk_limit;
	sandbox->cpu = session->cpu_limit;
	if (!sandbox->workspace && session->workspace.data)
		sandbox->workspace = strndup(session->workspace.data, session->workspace.size);
}

static void stay(struct sandbox *sandbox, const char *session)
{
	struct lair_call *call = NULL;
	int r = lair_stay(sandbox->tenant->lair, &call, session, 0);

	call_forget(call, r);
}

static void sandbox_stay(struct sandbox *sandbox)
{
	static const char *const purposes[] = {"", "~0", "~f"};

	for (size_t i = 0; i < ARRAY_SIZE(purposes); i++) {
		_cleanup_(freep) char *name = NULL;

		if ((i == 1 && !sandbox->based) || (i == 2 && !sandbox->filed))
			continue;
		if (asprintf(&name, "%s%s", sandbox->session, purposes[i]) >= 0)
			stay(sandbox, name);
	}
	for (const struct context *context = sandbox->contexts; context; context = context->next)
		stay(sandbox, context->session);
}

void sandbox_kill(struct server *server, struct sandbox *sandbox)
{
	sandbox_end_sessions(sandbox->tenant, sandbox->session);
	sandbox_drop(server, sandbox);
}

/* Its variables are saved, and are loaded again if laird ends it meanwhile. */
static void sandbox_pause(struct sandbox *sandbox)
{
	struct lair_call *call = NULL;
	int r = lair_save(sandbox->tenant->lair, &call, sandbox->session);

	call_forget(call, r);
	sandbox->paused = true;
	sandbox->ends = 0;
}

void sandboxes_tick(struct server *server, double now)
{
	double date = wall_now();

	for (struct sandbox *sandbox = e2b_of(server)->sandboxes, *next; sandbox; sandbox = next) {
		next = sandbox->next;
		if (sandbox->tenant->revoked) {
			sandbox_drop(server, sandbox);
			continue;
		}
		processes_tick(sandbox, now);
		if (sandbox->ends > 0 && sandbox->ends <= date) {
			if (sandbox->pauses)
				sandbox_pause(sandbox);
			else
				sandbox_kill(server, sandbox);
		} else if (!sandbox->paused && sandbox->stays <= now) {
			sandbox->stays = now + STAY_SECONDS;
			sandbox_stay(sandbox);
		}
	}
}

void sandboxes_close(struct server *server)
{
	while (e2b_of(server)->sandboxes)
		sandbox_drop(server, e2b_of(server)->sandboxes);
}
