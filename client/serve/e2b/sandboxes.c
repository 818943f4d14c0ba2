/* Sandboxes: E2B's control plane. What E2B has and laird has not, such as metadata and the end of a sandbox, is
 * known here alone; if the server is started again, a sandbox that is asked for is taken on as it is found in
 * laird. */
#include "e2b.h"

#include "text.h"
#include "tokens.h"

#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ENVD_VERSION "0.6.4"
#define TEMPLATE "code-interpreter-v1"
#define CLIENT_ID "lair"
#define DEBUG_ID "debug_sandbox_id"
#define TIMEOUT_DEFAULT 300.0
#define TIMEOUT_MAX (366 * 86400.0)
#define STAY_SECONDS 60.0
#define LIST_MAX 100
#define SANDBOXES_MAX 4096

static struct e2b *e2b_of(const struct server *server)
{
	return server->doors.e2b;
}

static double wall(void)
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
	free(sandbox->workspace);
	free(sandbox->template);
	free(sandbox->session);
	free(sandbox->id);
	free(sandbox);
}

static void sandbox_put(struct sandbox *sandbox)
{
	if (--sandbox->users == 0)
		sandbox_free(sandbox);
}

/* Derived from the token's hash, so it is the same after a restart, and ends with the token. */
static void token_make(const struct tenant *tenant, const char *id, char token[static ACCESS_SIZE])
{
	unsigned char hash[crypto_generichash_BYTES];

	(void)crypto_generichash(hash, sizeof(hash), (const unsigned char *)id, strlen(id),
				 tenant->token ? tenant->token->hash : NULL, tenant->token ? TOKEN_HASH_SIZE : 0);
	(void)sodium_bin2hex(token, ACCESS_SIZE, hash, sizeof(hash));
}

static struct sandbox *sandbox_new(struct exchange *exchange, const char *id, const char *template)
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
	sandbox->started = wall();
	sandbox->stays = server_now() + STAY_SECONDS;
	token_make(exchange->tenant, id, sandbox->token);
	sandbox->next = e2b->sandboxes;
	e2b->sandboxes = sandbox;
	return sandbox;
}

static void sandbox_drop(struct server *server, struct sandbox *sandbox)
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

static struct sandbox *sandbox_find(const struct exchange *exchange, const char *id)
{
	for (struct sandbox *sandbox = e2b_of(exchange->server)->sandboxes; sandbox; sandbox = sandbox->next)
		if (sandbox->tenant == exchange->tenant && strcmp(sandbox->id, id) == 0)
			return sandbox;
	return NULL;
}

static void sandbox_learn(struct sandbox *sandbox, const struct lair_session *session)
{
	sandbox->birth = session->birth;
	sandbox->memory = session->memory_limit;
	sandbox->disk = session->disk_limit;
	sandbox->cpu = session->cpu_limit;
	if (!sandbox->workspace && session->workspace.data)
		sandbox->workspace = strndup(session->workspace.data, session->workspace.size);
}

/* ---- calls that nobody waits for ---- */

static void on_forgotten(struct lair_call *call, void *userdata)
{
	(void)userdata;
	(void)lair_call_free(call);
}

static void forget(struct lair_call *call, int started)
{
	if (!started)
		lair_on_done(call, on_forgotten, NULL);
}

static void session_end(struct tenant *tenant, const char *session)
{
	struct lair_call *call = NULL;
	int r = lair_shutdown(tenant->lair, &call, session);

	forget(call, r);
}

void sandbox_end_branch(struct sandbox *sandbox, const char *session)
{
	session_end(sandbox->tenant, session);
}

/* Whether @name is a session of the sandbox whose own is @session. */
static bool belongs(struct lair_text name, const char *session)
{
	size_t size = strlen(session);

	return name.size >= size && memcmp(name.data, session, size) == 0 &&
	       (name.size == size || name.data[size] == '~');
}

struct ending {
	struct tenant *tenant;
	char *session;
};

static void on_listed(struct lair_call *call, void *userdata)
{
	struct ending *ending = userdata;
	struct lair_session found;
	size_t cursor = 0;

	if (!lair_outcome(call)) {
		struct lair_items sessions = lair_sessions(call);

		while (lair_next_session(sessions, &cursor, &found)) {
			_cleanup_(freep) char *name = strndup(found.session.data, found.session.size);

			if (name && belongs(found.session, ending->session))
				session_end(ending->tenant, name);
		}
	}
	free(ending->session);
	free(ending);
	(void)lair_call_free(call);
}

/* The session and its branches, also those that an earlier server has made; and what was saved. */
static void sessions_end(struct tenant *tenant, const char *session)
{
	struct ending *ending = calloc(1, sizeof(*ending));
	struct lair_call *call = NULL, *unsave = NULL;
	int r;

	if (!ending)
		return;
	ending->tenant = tenant;
	ending->session = strdup(session);
	r = ending->session ? lair_list(tenant->lair, &call) : -ENOMEM;
	if (r) {
		free(ending->session);
		free(ending);
		return;
	}
	lair_on_done(call, on_listed, ending);
	r = lair_unsave(tenant->lair, &unsave, session);
	forget(unsave, r);
}

static void stay(struct sandbox *sandbox, const char *session)
{
	struct lair_call *call = NULL;
	int r = lair_stay(sandbox->tenant->lair, &call, session, 0);

	forget(call, r);
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

static void sandbox_kill(struct server *server, struct sandbox *sandbox)
{
	sessions_end(sandbox->tenant, sandbox->session);
	sandbox_drop(server, sandbox);
}

/* Its variables are saved, so that they come back if laird ends it meanwhile. */
static void sandbox_pause(struct sandbox *sandbox)
{
	struct lair_call *call = NULL;
	int r = lair_save(sandbox->tenant->lair, &call, sandbox->session);

	forget(call, r);
	sandbox->paused = true;
	sandbox->ends = 0;
}

void sandboxes_tick(struct server *server, double now)
{
	double date = wall();

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

/* ---- which sandbox ---- */

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

static struct sandbox *signed_sandbox(const struct exchange *exchange)
{
	const char *signature = exchange_query(exchange, "signature");

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
		token_make(tenant, id, token);
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

static struct work *work_new(struct exchange *exchange, size_t size)
{
	exchange->state = calloc(1, size);
	exchange->free_state = work_free;
	if (!exchange->state) {
		exchange->free_state = NULL;
		answer_error(exchange, -ENOMEM, "out of memory");
	}
	return exchange->state;
}

static void work_take(struct exchange *exchange, struct sandbox *sandbox)
{
	struct work *work = exchange->state;

	work->sandbox = sandbox;
	sandbox->users++;
}

static bool expired(const struct exchange *exchange)
{
	const char *until = exchange_query(exchange, "signature_expiration");

	return until && strtod(until, NULL) < wall();
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

static void adopt(struct exchange *exchange, const char *id)
{
	const char *session = exchange_session(exchange, id ? id : DEBUG_ID);
	struct lair *lair = session ? exchange_lair(exchange) : NULL;
	const char *profile = NULL;

	if (!lair || (!id && !profile_of(exchange, NULL, &profile)))
		return;
	exchange_wait_any(exchange,
			  id ? lair_info(lair, &exchange->call, session)
			     : lair_open(lair, &exchange->call, session, profile),
			  adopted);
}

void sandbox_enter(struct exchange *exchange, size_t size, handler *then)
{
	const char *id = data_id(exchange);
	bool is_signed_url = !id && exchange_query(exchange, "signature");
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
		adopt(exchange, id);
	else {
		work_take(exchange, sandbox);
		then(exchange);
	}
}

/* ---- branches ---- */

static void branch_again(struct exchange *exchange);

static bool is_there(const struct lair_call *call)
{
	/* laird says so if there is a session of that name. */
	return !lair_outcome(call) || lair_outcome(call) == LAIR_E_DENIED;
}

static void base_made(struct exchange *exchange)
{
	struct work *work = exchange->state;

	if (!is_there(exchange->call)) {
		e2b_refuse(exchange);
		return;
	}
	work->sandbox->based = true;
	exchange->call = lair_call_free(exchange->call);
	branch_again(exchange);
}

static int base_make(struct exchange *exchange, struct sandbox *sandbox)
{
	struct lair_branch branch = {.session = sandbox->session, .share = true};
	_cleanup_(freep) char *base = NULL;

	if (asprintf(&base, "%s~0", sandbox->session) < 0)
		return -ENOMEM;
	branch.branch = base;
	return lair_branch(sandbox->tenant->lair, &exchange->call, &branch);
}

static void branch_made(struct exchange *exchange)
{
	struct work *work = exchange->state;

	if (lair_outcome(exchange->call) == LAIR_E_NO_SESSION && work->sandbox->based) {
		/* The base has ended. The session itself does as well, if it does not run a cell. */
		work->sandbox->based = false;
		exchange->call = lair_call_free(exchange->call);
		exchange_wait_any(exchange, base_make(exchange, work->sandbox), base_made);
		return;
	}
	if (!is_there(exchange->call)) {
		e2b_refuse(exchange);
		return;
	}
	exchange->call = lair_call_free(exchange->call);
	work->after(exchange);
}

static void branch_again(struct exchange *exchange)
{
	struct work *work = exchange->state;
	struct lair_branch branch = {.branch = work->branch, .share = true};
	_cleanup_(freep) char *base = NULL;

	if (asprintf(&base, "%s~0", work->sandbox->session) < 0) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	branch.session = base;
	exchange_wait_any(exchange, lair_branch(exchange->tenant->lair, &exchange->call, &branch), branch_made);
}

void sandbox_branch(struct exchange *exchange, const char *purpose, bool may_exist, handler *then)
{
	struct work *work = exchange->state;
	struct sandbox *sandbox = work->sandbox;

	(void)may_exist;
	freep(&work->branch);
	if (asprintf(&work->branch, "%s~%s", sandbox->session, purpose) < 0) {
		work->branch = NULL;
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	work->after = then;
	if (sandbox->based)
		branch_again(exchange);
	else
		exchange_wait_any(exchange, base_make(exchange, sandbox), base_made);
}

static char **environment_room(size_t n, size_t size)
{
	return calloc(1, (n + 1) * sizeof(char *) + size);
}

char **sandbox_environment(const struct sandbox *sandbox, const json_t *more)
{
	json_t *all = json_deep_copy(sandbox->envs), *value;
	size_t n, size = 1;
	const char *name;
	char **list, *at;

	if (json_is_object(more))
		json_object_update(all, (json_t *)(uintptr_t)more);
	json_object_foreach(all, name, value) size += strlen(name) + json_string_length(value) + 2;
	n = json_object_size(all);
	list = environment_room(n, size);
	at = list ? (char *)(list + n + 1) : NULL;
	n = 0;
	json_object_foreach(all, name, value)
	{
		if (!list || !json_is_string(value) || !*name || strchr(name, '='))
			continue;
		list[n++] = at;
		at += sprintf(at, "%s=%s", name, json_string_value(value)) + 1;
	}
	json_decref(all);
	return list;
}

/* ---- what is told of one ---- */

static json_t *date(double when)
{
	time_t seconds = (time_t)when;
	struct tm tm;
	char text[64];

	gmtime_r(&seconds, &tm);
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)((when - floor(when)) * 1000));
	return json_string(text);
}

/* Both tokens always: a request for contexts has nothing else to prove itself with. */
static json_t *made_document(const struct sandbox *sandbox)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "templateID", sandbox->template, "sandboxID",
			 sandbox->id, "clientID", CLIENT_ID, "envdVersion", ENVD_VERSION, "envdAccessToken",
			 sandbox->token, "trafficAccessToken", sandbox->token);
}

static json_t *info_document(const struct sandbox *sandbox)
{
	json_t *document = made_document(sandbox);
	double never = sandbox->started + TIMEOUT_MAX;

	json_object_del(document, "trafficAccessToken");
	json_object_set_new(document, "startedAt", date(sandbox->started));
	json_object_set_new(document, "endAt", date(sandbox->ends > 0 ? sandbox->ends : never));
	json_object_set_new(document, "cpuCount", json_integer((json_int_t)fmax(ceil(sandbox->cpu), 1)));
	json_object_set_new(document, "memoryMB", json_integer((json_int_t)(sandbox->memory >> 20)));
	json_object_set_new(document, "diskSizeMB", json_integer((json_int_t)(sandbox->disk >> 20)));
	json_object_set_new(document, "state", json_string(sandbox->paused ? "paused" : "running"));
	json_object_set(document, "metadata", sandbox->metadata);
	return document;
}

static double timeout_of(const json_t *asked, double otherwise)
{
	const json_t *timeout = json_object_get(asked, "timeout");

	return json_is_number(timeout) ? fmin(fmax(json_number_value(timeout), 0), TIMEOUT_MAX) : otherwise;
}

/* ---- create ---- */

static void create_done(struct exchange *exchange)
{
	answer_json(exchange, 201, made_document(sandbox_of(exchange)));
}

static void create_based(struct exchange *exchange)
{
	/* Without a branch there are neither contexts nor commands; whoever asks for them is told why. */
	sandbox_of(exchange)->based = is_there(exchange->call);
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
	sandbox->ends = sandbox->started + timeout_of(asked, TIMEOUT_DEFAULT);
}

static const char *template_of(const json_t *asked)
{
	const char *template = json_string_value(json_object_get(asked, "templateID"));

	return template && *template ? template : TEMPLATE;
}

/* E2B's own templates are the profile that is for those who name none. */
static bool is_usual(const char *template)
{
	return strcmp(template, "base") == 0 || strncmp(template, "code-interpreter", 16) == 0;
}

static void create_opened(struct exchange *exchange)
{
	struct work *work = exchange->state;
	const char *template = template_of(work->asked);
	struct sandbox *sandbox;

	if (lair_outcome(exchange->call) == LAIR_E_BAD_REQUEST && !is_usual(template)) {
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
	exchange_wait_any(exchange, base_make(exchange, sandbox), create_based);
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
	if (bad || !profile_of(exchange, is_usual(template) ? NULL : template, &profile))
		return;
	if (n >= SANDBOXES_MAX) {
		answer_problem(exchange, 429, "limit", "there are %d sandboxes already", SANDBOXES_MAX);
		return;
	}
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

/* ---- list ---- */

static int nibble(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Percents and pluses, in place. */
static void unquote(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		if (*at == '%' && nibble(at[1]) >= 0 && nibble(at[2]) >= 0) {
			*to++ = (char)(nibble(at[1]) << 4 | nibble(at[2]));
			at += 2;
		} else {
			*to++ = (char)(*at == '+' ? ' ' : *at);
		}
	}
	*to = '\0';
}

/* Whether it has all the pairs of a text as a query has them, each quoted twice. */
static bool has_metadata(const struct sandbox *sandbox, const char *wanted)
{
	_cleanup_(freep) char *pairs = strdup(wanted);
	char *state = NULL;

	for (char *pair = pairs ? strtok_r(pairs, "&", &state) : NULL; pair; pair = strtok_r(NULL, "&", &state)) {
		char *value = strchr(pair, '=');
		const char *found;

		if (value)
			*value++ = '\0';
		for (unsigned i = 0; i < 2; i++) {
			unquote(pair);
			if (value)
				unquote(value);
		}
		found = json_string_value(json_object_get(sandbox->metadata, pair));
		if (!found || strcmp(found, value ? value : "") != 0)
			return false;
	}
	return pairs != NULL;
}

static bool is_wanted(const struct exchange *exchange, const struct sandbox *sandbox)
{
	const char *metadata = exchange_query(exchange, "metadata"), *state = exchange_query(exchange, "state");
	const char *template = exchange_query(exchange, "template");

	return sandbox->tenant == exchange->tenant && (!metadata || has_metadata(sandbox, metadata)) &&
	       (!state || strstr(state, sandbox->paused ? "paused" : "running")) &&
	       (!template || strcmp(template, sandbox->template) == 0);
}

static bool is_alive(struct lair_items sessions, const struct sandbox *sandbox)
{
	struct lair_session found;
	size_t cursor = 0;

	while (lair_next_session(sessions, &cursor, &found))
		if (text_is(found.session, sandbox->session))
			return true;
	return sandbox->paused;
}

static void list_done(struct exchange *exchange)
{
	const char *order = exchange_query(exchange, "order");
	size_t limit = exchange_query_number(exchange, "limit"),
	       from = exchange_query_number(exchange, "nextToken"), n = 0;
	json_t *found = json_array(), *page = json_array();
	char next[32];

	for (struct sandbox *sandbox = e2b_of(exchange->server)->sandboxes, *following; sandbox;
	     sandbox = following) {
		following = sandbox->next;
		if (sandbox->tenant == exchange->tenant && !is_alive(lair_sessions(exchange->call), sandbox))
			sandbox_drop(exchange->server, sandbox);
		else if (is_wanted(exchange, sandbox) && order && strcmp(order, "asc") == 0)
			json_array_insert_new(found, 0, info_document(sandbox));
		else if (is_wanted(exchange, sandbox))
			json_array_append_new(found, info_document(sandbox));
	}
	limit = limit > 0 && limit < LIST_MAX ? limit : LIST_MAX;
	for (n = from; n < json_array_size(found) && n < from + limit; n++)
		json_array_append(page, json_array_get(found, n));
	if (n < json_array_size(found)) {
		snprintf(next, sizeof(next), "%zu", n);
		answer_header(exchange, "X-Next-Token", next);
	}
	json_decref(found);
	answer_json(exchange, 200, page);
}

void list_begin(struct exchange *exchange)
{
	struct lair *lair = exchange_lair(exchange);

	if (lair)
		exchange_wait(exchange, lair_list(lair, &exchange->call), list_done);
}

/* ---- one of them, by its id ---- */

static void no_sandbox(struct exchange *exchange)
{
	answer_problem(exchange, 404, "not_found", "sandbox \"%.80s\" not found", exchange_path(exchange, "id"));
}

static void control_found(struct exchange *exchange)
{
	struct work *work = exchange->state;
	const char *id = exchange_path(exchange, "id");
	struct sandbox *sandbox = sandbox_find(exchange, id);
	int r = lair_outcome(exchange->call);

	if (r == LAIR_E_NO_SESSION && sandbox && !sandbox->paused)
		sandbox_drop(exchange->server, sandbox);
	if (r == LAIR_E_NO_SESSION && !(sandbox && sandbox->paused)) {
		no_sandbox(exchange);
		return;
	}
	if (r && r != LAIR_E_NO_SESSION) {
		exchange_refuse(exchange);
		return;
	}
	if (!sandbox && strchr(id, '~')) {
		no_sandbox(exchange);
		return;
	}
	if (!sandbox)
		sandbox = sandbox_new(exchange, id, TEMPLATE);
	if (!sandbox) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	if (!r)
		sandbox_learn(sandbox, lair_session(exchange->call));
	work_take(exchange, sandbox);
	work->then(exchange);
}

/* @then runs with the answer of info in exchange->call. It is an error only of a sandbox that is paused. */
static void control(struct exchange *exchange, handler *then)
{
	struct work *work = work_new(exchange, sizeof(*work));
	const char *session;
	struct lair *lair;

	if (!work || (exchange->body_size > 0 && !e2b_body(exchange, exchange_body(exchange), &work->asked)))
		return;
	work->then = then;
	session = exchange_session(exchange, exchange_path(exchange, "id"));
	lair = session ? exchange_lair(exchange) : NULL;
	if (lair)
		exchange_wait_any(exchange, lair_info(lair, &exchange->call, session), control_found);
}

static void info_found(struct exchange *exchange)
{
	answer_json(exchange, 200, info_document(sandbox_of(exchange)));
}

void info_begin(struct exchange *exchange)
{
	control(exchange, info_found);
}

static void resume(struct exchange *exchange)
{
	struct work *work = exchange->state;
	struct sandbox *sandbox = work->sandbox;
	double ends = wall() + timeout_of(work->asked, TIMEOUT_DEFAULT);

	/* It never shortens the time of one that runs. */
	if (sandbox->paused || (sandbox->ends > 0 && ends > sandbox->ends))
		sandbox->ends = ends;
	sandbox->paused = false;
	sandbox->stays = server_now() + STAY_SECONDS;
}

static void resumed(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);

	if (lair_outcome(exchange->call)) {
		exchange_refuse(exchange);
		return;
	}
	sandbox_learn(sandbox, lair_session(exchange->call));
	sandbox->based = sandbox->filed = false;
	resume(exchange);
	answer_json(exchange, 201, made_document(sandbox));
}

static void connect_found(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);
	const char *profile = NULL;
	bool paused = sandbox->paused;
	struct lair_call *call = NULL;
	int r;

	if (!lair_outcome(exchange->call)) {
		resume(exchange);
		if (paused) {
			r = lair_unsave(sandbox->tenant->lair, &call, sandbox->session);
			forget(call, r);
		}
		answer_json(exchange, paused ? 201 : 200, made_document(sandbox));
		return;
	}
	/* laird has ended it meanwhile. It is opened anew, and what was saved comes back. */
	exchange->call = lair_call_free(exchange->call);
	if (profile_of(exchange, is_usual(sandbox->template) ? NULL : sandbox->template, &profile))
		exchange_wait_any(exchange,
				  lair_open(sandbox->tenant->lair, &exchange->call, sandbox->session, profile),
				  resumed);
}

void connect_begin(struct exchange *exchange)
{
	control(exchange, connect_found);
}

static void timeout_found(struct exchange *exchange)
{
	const struct work *work = exchange->state;

	work->sandbox->ends = wall() + timeout_of(work->asked, TIMEOUT_DEFAULT);
	answer_empty(exchange, 204);
}

void timeout_begin(struct exchange *exchange)
{
	control(exchange, timeout_found);
}

static void kill_found(struct exchange *exchange)
{
	sandbox_kill(exchange->server, sandbox_of(exchange));
	answer_empty(exchange, 204);
}

void kill_begin(struct exchange *exchange)
{
	control(exchange, kill_found);
}

static void pause_done(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);
	int r = lair_outcome(exchange->call);

	/* Nothing to save is no failure. */
	if (r && r != LAIR_E_UNSUPPORTED) {
		exchange_refuse(exchange);
		return;
	}
	sandbox->paused = true;
	sandbox->ends = 0;
	answer_empty(exchange, 204);
}

static void pause_found(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);

	if (sandbox->paused) {
		answer_problem(exchange, 409, "busy", "sandbox \"%.80s\" is paused already", sandbox->id);
		return;
	}
	exchange->call = lair_call_free(exchange->call);
	exchange_wait_any(exchange, lair_save(sandbox->tenant->lair, &exchange->call, sandbox->session),
			  pause_done);
}

void pause_begin(struct exchange *exchange)
{
	control(exchange, pause_found);
}

static void metrics_found(struct exchange *exchange)
{
	const struct lair_session *session = lair_session(exchange->call);
	const struct sandbox *sandbox = sandbox_of(exchange);
	json_t *metric;

	if (!session) {
		answer_json(exchange, 200, json_array());
		return;
	}
	metric = json_pack("{s:o, s:I, s:i, s:f, s:I, s:I, s:i, s:I, s:I}", "timestamp", date(wall()),
			   "timestampUnix", (json_int_t)wall(), "cpuCount", (int)fmax(ceil(sandbox->cpu), 1),
			   "cpuUsedPct", 0.0, "memUsed", (json_int_t)session->memory, "memTotal",
			   (json_int_t)session->memory_limit, "memCache", 0, "diskUsed", (json_int_t)session->disk,
			   "diskTotal", (json_int_t)session->disk_limit);
	answer_json(exchange, 200, json_pack("[o]", metric));
}

void sandbox_metrics_begin(struct exchange *exchange)
{
	control(exchange, metrics_found);
}
