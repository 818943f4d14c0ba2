/* Tenants, which are the clients of one token, and the connections to laird of each. laird takes turns between the
 * connections of a user, so no tenant has to wait for all that another one has asked. */
#include "feeds.h"
#include "tokens.h"

#include "base/text.h"

#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RETRY 1.0
/* Bytes of streams that are read at a time. */
#define STREAM_BATCH ((size_t)32 << 10)
#define HASTE 10.0

/* ---- connections to laird ---- */

/* Streams have a loop of their own: streams_turn. */
static struct event_loop *line_loop(const struct line *line)
{
	struct server *server = line->tenant->server;

	return line == &line->tenant->requests ? &server->loop : &server->streams_loop;
}

static void on_lair(struct event_source *source, uint32_t events);

static int line_watch(struct line *line)
{
	return event_set(line_loop(line), &line->source, line->fd, EPOLLIN, on_lair);
}

static void line_unwatch(struct line *line)
{
	event_remove(line_loop(line), &line->source);
}

static void on_lair(struct event_source *source, uint32_t events)
{
	struct line *line = container_of(source, struct line, source);

	if (line != &line->tenant->requests)
		server_streamed(line);
	if (lair_process(line->lair) == LAIR_E_LOST) {
		line_unwatch(line);
		line->fd = -1;
	}
}

static int line_new(struct line *line, struct tenant *tenant)
{
	/* laird is started once, when we are. Later, whoever has stopped it wants it stopped. */
	const struct lair_options options = {.discreet = !tenant->server->open,
					     .socket = tenant->server->options->lair.socket,
					     .no_start = true,
					     .timeout = 2,
					     .batch = line == &tenant->requests ? 0 : STREAM_BATCH};

	*line = (struct line){.tenant = tenant, .source = EVENT_SOURCE_NONE, .fd = -1};
	return lair_new(&line->lair, &options);
}

static void line_free(struct line *line)
{
	if (line->lair && line->fd >= 0)
		line_unwatch(line);
	line->lair = lair_free(line->lair);
}

int line_open(struct line *line, const char **sentencep)
{
	double now = server_now();
	int r;

	if (line->fd >= 0)
		return 0;
	*sentencep = lair_error(line->lair);
	if (now < line->retry)
		return LAIR_E_NO_DAEMON;
	r = lair_connect(line->lair);
	*sentencep = lair_error(line->lair);
	if (r) {
		line->retry = now + RETRY;
		return r;
	}
	line->held = 0;
	line->fd = lair_fd(line->lair);
	return line->n_stops ? 0 : line_watch(line);
}

void line_hold(struct line *line, double seconds)
{
	struct server *server = line->tenant->server;
	double now = server_now();

	if (line->held > 0 || line->fd < 0 || now < line->hasty)
		return;
	line->held = now + seconds;
	server->next_tick = fmin(server->next_tick, line->held);
	line_unwatch(line);
}

void line_resume(struct line *line)
{
	double now = server_now();

	if (line->held > 0 && line->held <= now)
		line->hasty = now + HASTE;
	if (line->held > 0 && line->fd >= 0)
		(void)line_watch(line);
	line->held = 0;
}

void line_stop(struct line *line)
{
	if (line->n_stops++ == 0 && line->fd >= 0)
		line_unwatch(line);
}

void line_start(struct line *line)
{
	if (--line->n_stops == 0 && line->fd >= 0)
		(void)line_watch(line);
}

struct line *flow_use(struct tenant *tenant)
{
	struct line *least = tenant->flows;

	for (size_t i = 1; i < FLOWS && least->n_users > 0; i++)
		if (tenant->flows[i].n_users < least->n_users)
			least = &tenant->flows[i];
	least->n_users++;
	return least;
}

struct line *flow_leave(struct line *line)
{
	if (line)
		line->n_users--;
	return NULL;
}

/* ---- tenants ---- */

static struct tenant *tenant_free(struct tenant *tenant)
{
	if (!tenant)
		return NULL;
	connections_drop(tenant);
	tenant->watch = lair_call_free(tenant->watch);
	seats_free(tenant);
	line_free(&tenant->requests);
	line_free(&tenant->streams);
	for (size_t i = 0; i < FLOWS; i++)
		line_free(&tenant->flows[i]);
	feeds_free(tenant);
	tokens_free(tenant->token);
	free(tenant->prefix);
	free(tenant->name);
	free(tenant);
	return NULL;
}

static struct tenant *tenant_new(struct server *server, const char *name, const char *prefix)
{
	struct tenant *tenant = calloc(1, sizeof(*tenant));
	int r;

	if (!tenant)
		return NULL;
	tenant->server = server;
	TAILQ_INIT(&tenant->idle);
	tenant->name = strdup(name);
	tenant->seats = json_object();
	if (asprintf(&tenant->prefix, "%s%s", prefix, *prefix ? ":" : "") < 0)
		tenant->prefix = NULL;
	r = line_new(&tenant->requests, tenant);
	if (!r)
		r = line_new(&tenant->streams, tenant);
	for (size_t i = 0; !r && i < FLOWS; i++)
		r = line_new(&tenant->flows[i], tenant);
	if (r || !tenant->name || !tenant->prefix || !tenant->seats)
		return tenant_free(tenant);
	tenant->lair = tenant->requests.lair;
	tenant->next = server->tenants;
	server->tenants = tenant;
	return tenant;
}

/* ---- the file of tokens ---- */

/* @token is taken over. */
static void tenant_take(struct tenant *tenant, struct token *token)
{
	tokens_free(tenant->token);
	token->next = NULL;
	tenant->token = token;
	tenant->profiles = token->profiles;
	tenant->limits =
		(struct limits){.sessions = token->sessions, .rate = token->rate, .requests = token->requests};
	tenant->revoked = false;
}

/* The same name with the same secret stays the same tenant; with another secret it is another tenant, which has the
 * sessions of the name. */
static struct tenant *tenant_with(struct server *server, const struct token *token)
{
	for (struct tenant *tenant = server->tenants; tenant; tenant = tenant->next)
		if (strcmp(tenant->name, token->name) == 0 &&
		    sodium_memcmp(tenant->token->hash, token->hash, sizeof(token->hash)) == 0)
			return tenant;
	return tenant_new(server, token->name, token->name);
}

/* Revoked tenants get nothing more. */
static void revoked_drop(struct server *server)
{
	for (struct exchange *exchange = server->exchanges; exchange; exchange = exchange->next)
		if (exchange->tenant && exchange->tenant->revoked)
			exchange_drop(exchange);
}

static void tenants_take(struct server *server, struct token *tokens)
{
	for (struct tenant *tenant = server->tenants; tenant; tenant = tenant->next)
		tenant->revoked = true;
	for (struct token *token = tokens, *next; token; token = next) {
		struct tenant *tenant = tenant_with(server, token);

		next = token->next;
		token->next = NULL;
		if (tenant)
			tenant_take(tenant, token);
		else
			tokens_free(token);
	}
	revoked_drop(server);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int tenants_reload(struct server *server)
{
	const char *path = server->options->tokens;
	struct token *tokens = NULL;
	struct stat st = {.st_ino = 0};
	char why[TOKEN_WHY_SIZE];
	int r;

	if (server->open || (stat(path, &st) == 0 && is_same(&st, &server->token_file)))
		return 0;
	if (st.st_ino == 0 && server->token_file.st_ino == 0 && server->http)
		return 0;
	r = tokens_read(&tokens, path, &st, why);
	if (r)
		memset(&st, 0, sizeof(st));
	server->token_file = st;
	/* With an invalid line the meaning of the others is unknown. A file that is gone lets no client in, either.
	 */
	if (r && server->http)
		fprintf(stderr, "lair serve: %s: nobody may use it until that is right\n", why);
	else if (r)
		fprintf(stderr, "lair serve: %s%s\n", why, r == -ENOENT ? "; lair token add NAME makes it" : "");
	tenants_take(server, tokens);
	return r;
}

/* Those who were revoked, and have nothing any more. */
void tenants_sweep(struct server *server)
{
	for (struct tenant **at = &server->tenants, *tenant; (tenant = *at);) {
		if (tenant->revoked && tenant->n_exchanges == 0) {
			*at = tenant->next;
			tenant_free(tenant);
		} else {
			at = &tenant->next;
		}
	}
}

int tenants_open(struct server *server)
{
	server->open = !server->options->tokens;
	if (!server->open)
		return tenants_reload(server);
	return tenant_new(server, "", "") ? 0 : -ENOMEM;
}

void tenants_close(struct server *server)
{
	for (struct tenant *tenant; (tenant = server->tenants);) {
		server->tenants = tenant->next;
		tenant_free(tenant);
	}
}

/* It takes as long for each token, whichever it is. */
struct tenant *tenant_of(struct server *server, const char *token)
{
	unsigned char hash[TOKEN_HASH_SIZE];
	struct tenant *found = NULL;

	if (server->open)
		return server->tenants;
	(void)tenants_reload(server);
	if (!token)
		return NULL;
	token_hash(hash, token);
	for (struct tenant *tenant = server->tenants; tenant; tenant = tenant->next)
		if (sodium_memcmp(tenant->token->hash, hash, sizeof(hash)) == 0 && !tenant->revoked)
			found = tenant;
	return found;
}

/* ---- how much it may ---- */

double tenant_admit(struct tenant *tenant)
{
	double now = server_now(), rate = tenant->limits.rate;

	if (!(rate > 0))
		return 0;
	/* Two seconds' worth may come at once. */
	tenant->tokens = fmin(tenant->tokens + (now - tenant->refilled) * rate, fmax(2 * rate, 1));
	tenant->refilled = now;
	if (tenant->tokens < 1)
		return (1 - tenant->tokens) / rate;
	tenant->tokens -= 1;
	return 0;
}

bool tenant_may(const struct tenant *tenant, const char *profile)
{
	if (!tenant->profiles)
		return true;
	for (size_t i = 0; tenant->profiles[i]; i++)
		if (strcmp(tenant->profiles[i], profile) == 0)
			return true;
	return false;
}

struct lair_text tenant_own(const struct tenant *tenant, struct lair_text session)
{
	size_t size = strlen(tenant->prefix);

	if (!session.data || session.size < size || memcmp(session.data, tenant->prefix, size) != 0)
		return (struct lair_text){.data = NULL};
	return (struct lair_text){.data = session.data + size, .size = session.size - size};
}
