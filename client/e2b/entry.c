/* The sandbox that a request means, and its owner: by the token, the id, or the signature of the URL. If laird has
 * a session that is not known here, as after a restart of the server, it becomes a sandbox as it is. */
#include "e2b.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

static bool same(const char *a, const char *b)
{
	return a && strlen(a) == strlen(b) && sodium_memcmp(a, b, strlen(b)) == 0;
}

static const char *data_id(const struct exchange *exchange)
{
	return exchange_header(exchange, "E2b-Sandbox-Id");
}

/* The signature of a URL: for which file, what may be done, as whom, with the token and until when. */
static bool is_signed(const struct exchange *exchange, const struct sandbox *sandbox, const char *signature)
{
	const char *path = exchange_query(exchange, "path"), *user = exchange_query(exchange, "username");
	const char *until = exchange_query(exchange, "signature_expiration");
	unsigned char hash[crypto_hash_sha256_BYTES];
	char expected[3 + sodium_base64_ENCODED_LEN(sizeof(hash), sodium_base64_VARIANT_ORIGINAL_NO_PADDING)] =
		"v1_";
	_cleanup_(freep) char *text = NULL;

	if (asprintf(&text, "%s:%s:%s:%s%s%s", path ? path : "",
		     strcmp(exchange->method, "GET") == 0 ? "read" : "write", user ? user : "", sandbox->token,
		     until ? ":" : "", until ? until : "") < 0)
		return false;
	(void)crypto_hash_sha256(hash, (const unsigned char *)text, strlen(text));
	(void)sodium_bin2base64(expected + 3, sizeof(expected) - 3, hash, sizeof(hash),
				sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
	return same(signature, expected);
}

/* The signature that the URL has, if it is that of a file: for anything else there is none. */
static const char *signature_of(const struct exchange *exchange)
{
	bool is_file = exchange->target.n == 1 && strcmp(exchange->target.segments[0], "files") == 0;

	return is_file ? exchange_query(exchange, "signature") : NULL;
}

static struct sandbox *signed_sandbox(const struct exchange *exchange)
{
	const char *signature = signature_of(exchange);

	for (struct sandbox *sandbox = signature ? e2b_of(exchange->server)->sandboxes : NULL; sandbox;
	     sandbox = sandbox->next)
		if (is_signed(exchange, sandbox, signature))
			return sandbox;
	return NULL;
}

struct tenant *sandbox_asker(const struct exchange *exchange)
{
	const char *id = data_id(exchange), *access = exchange_header(exchange, "X-Access-Token");
	const char *traffic = exchange_header(exchange, "E2B-Traffic-Access-Token");
	const struct sandbox *sandbox;
	char token[ACCESS_SIZE];

	if (exchange->server->open)
		return tenant_of(exchange->server, NULL);
	for (struct tenant *tenant = id ? exchange->server->tenants : NULL; tenant; tenant = tenant->next) {
		sandbox_token(tenant, id, token);
		if (!tenant->revoked && (same(access, token) || same(traffic, token)))
			return tenant;
	}
	sandbox = id ? NULL : signed_sandbox(exchange);
	return sandbox && !sandbox->tenant->revoked ? sandbox->tenant : NULL;
}

struct sandbox *sandbox_of(const struct exchange *exchange)
{
	const struct work *work = exchange->state;

	return work ? work->sandbox : NULL;
}

static void work_free(void *state)
{
	struct work *work = state;

	if (work->finish)
		work->finish(work);
	if (work->sandbox)
		sandbox_put(work->sandbox);
	json_decref(work->asked);
	free(work->branch);
	free(work);
}

struct work *work_new(struct exchange *exchange, size_t size)
{
	exchange->state = calloc(1, size);
	exchange->free_state = work_free;
	if (!exchange->state) {
		exchange->free_state = NULL;
		answer_error(exchange, -ENOMEM, "out of memory");
	}
	return exchange->state;
}

void work_take(struct exchange *exchange, struct sandbox *sandbox)
{
	struct work *work = exchange->state;

	work->sandbox = sandbox;
	sandbox->users++;
}

static bool expired(const struct exchange *exchange)
{
	const char *until = exchange_query(exchange, "signature_expiration");

	return until && strtod(until, NULL) < wall_now();
}

/* A session that laird has, and that we do not know. It is not ours to end. */
static void adopted(struct exchange *exchange)
{
	struct work *work = exchange->state;
	const char *id = data_id(exchange);
	struct sandbox *sandbox;

	if (!lair_session(exchange->call)) {
		e2b_refuse(exchange);
		return;
	}
	id = id ? id : DEBUG_ID;
	sandbox = sandbox_find(exchange, id);
	if (!sandbox)
		sandbox = sandbox_new(exchange, id, TEMPLATE);
	if (!sandbox) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	sandbox_learn(sandbox, lair_session(exchange->call));
	work_take(exchange, sandbox);
	exchange->call = lair_call_free(exchange->call);
	work->then(exchange);
}

/* The sandbox without a name is made for whoever has E2B's key, and on the ports of the debug mode, whose SDKs send
 * none, by what no page can make a browser send. */
static bool makes_debug(const struct exchange *exchange)
{
	return exchange_header(exchange, "X-API-KEY") || exchange_header(exchange, "Authorization") ||
	       (is_fixed_port(exchange->server) && !exchange_is_simple(exchange));
}

static void adopt(struct exchange *exchange)
{
	const char *id = data_id(exchange);
	const char *session = exchange_session(exchange, id ? id : DEBUG_ID);
	struct lair *lair = session ? exchange_lair(exchange) : NULL;
	const char *profile = NULL;
	bool makes = !id && makes_debug(exchange);

	if (!lair || (makes && (!template_profile(exchange, TEMPLATE, &profile) ||
				!session_admitted_again(exchange, session, adopt))))
		return;
	exchange_wait_any(exchange,
			  makes ? lair_open(lair, &exchange->call, session, profile)
				: lair_info(lair, &exchange->call, session),
			  adopted);
}

void sandbox_enter(struct exchange *exchange, size_t size, handler *then)
{
	const char *id = data_id(exchange);
	bool is_signed_url = !id && signature_of(exchange);
	struct work *work = work_new(exchange, size);
	struct sandbox *sandbox;

	if (!work || !exchange_lair(exchange))
		return;
	work->then = then;
	sandbox = is_signed_url ? signed_sandbox(exchange) : sandbox_find(exchange, id ? id : DEBUG_ID);
	if (is_signed_url && !sandbox)
		answer_problem(exchange, 401, "unauthorized", "invalid signature");
	else if (is_signed_url && expired(exchange))
		answer_problem(exchange, 401, "unauthorized", "signature is already expired");
	else if (sandbox && sandbox->paused)
		e2b_lost(exchange);
	else if (!sandbox)
		adopt(exchange);
	else {
		work_take(exchange, sandbox);
		then(exchange);
	}
}
