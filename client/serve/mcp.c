/* The door of the Model Context Protocol: the server of `lair mcp`, with requests of HTTP as its transport. In the
 * stateless era each request is a conversation of its own, which ends with it. In the era of the handshake a
 * conversation has a name, which the client gives back with each request. */
#include "doors.h"

#include "base/jsonrpc.h"
#include "base/text.h"
#include "mcp/engine.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define SESSION_HEADER "Mcp-Session-Id"
#define VERSION_HEADER "MCP-Protocol-Version"
/* Conversations with a name, of one tenant. */
#define TALKS_MAX 256
#define TALK_SECONDS 3600.0
#define ALIVE_SECONDS 15.0
#define NAME_SIZE 33

/* A conversation. It may be used by several exchanges at a time. */
struct talk {
	struct talk *next;
	struct tenant *tenant;
	struct engine *engine;
	struct ask *asks;
	const struct ask *saying; /* whose message is being taken */
	char name[NAME_SIZE];	  /* name: "" of the stateless era */
	char *fallback;		  /* the session of calls that name none */
	struct mcp_once once; /* with tokens: their names begin with the token's, so that the audit log has it */
	char *prefix;	      /* of these */
	double used;
};

/* An exchange that waits for an answer; its state. */
struct ask {
	struct exchange *exchange;
	struct talk *talk;
	struct ask *next; /* of the talk */
	struct rpc rpc;	  /* what the client says */
	bool begun;	  /* its conversation begins with it */
};

struct mcp_state {
	struct talk *talks;
	struct mcp_options options;
};

/* ---- conversations ---- */

static struct mcp_state *state_of(const struct server *server)
{
	return server->doors.mcp;
}

static void talk_free(struct talk *talk)
{
	free(talk->fallback);
	free(talk->prefix);
	free(talk);
}

static void talk_drop(struct server *server, struct talk *talk)
{
	struct talk **at = &state_of(server)->talks;

	while (*at && *at != talk)
		at = &(*at)->next;
	if (*at)
		*at = talk->next;
	for (struct ask *ask = talk->asks; ask; ask = ask->next) {
		ask->talk = NULL;
		exchange_drop(ask->exchange);
	}
	engine_free(talk->engine);
	talk_free(talk);
}

static void ask_leave(struct ask *ask)
{
	struct ask **at = ask->talk ? &ask->talk->asks : NULL;

	while (at && *at && *at != ask)
		at = &(*at)->next;
	if (at && *at)
		*at = ask->next;
}

static void ask_free(void *state)
{
	struct ask *ask = state;
	struct talk *talk = ask->talk;

	ask_leave(ask);
	/* In the stateless era to go away is to cancel. */
	if (talk && !*talk->name)
		talk_drop(ask->exchange->server, talk);
	rpc_deinit(&ask->rpc);
	free(ask);
}

/* ---- what the server says ---- */

/* The exchange that a message goes out on: that of the request that it belongs to. */
static struct ask *ask_of(const struct talk *talk, const json_t *about)
{
	for (struct ask *ask = talk->asks; ask; ask = ask->next)
		if ((!*talk->name || (about && json_equal(about, ask->rpc.id))) && !ask->exchange->gone &&
		    !ask->exchange->ended)
			return ask;
	return NULL;
}

static unsigned status_for(const json_t *document)
{
	switch (json_integer_value(json_object_get(json_object_get(document, "error"), "code"))) {
	case RPC_PARSE:
	case RPC_INVALID_REQUEST:
	case RPC_MISMATCH:
	case RPC_VERSION:
		return 400;
	case RPC_NO_METHOD:
		return 404;
	default:
		return 200;
	}
}

static void on_alarm(struct exchange *exchange)
{
	/* A comment. */
	(void)stream_write(exchange, lair_text(": alive\n\n"));
	exchange_alarm(exchange, ALIVE_SECONDS, on_alarm);
}

static void events_begin(struct exchange *exchange)
{
	if (exchange->streaming)
		return;
	answer_header(exchange, "X-Accel-Buffering", "no");
	stream_begin(exchange, 200, "text/event-stream", STREAM_OPEN);
	exchange_alarm(exchange, ALIVE_SECONDS, on_alarm);
}

static void answer_ask(struct ask *ask, json_t *document)
{
	struct exchange *exchange = ask->exchange;

	if (exchange->streaming) {
		if (!stream_event(exchange, "message", NULL, document))
			stream_break(exchange);
		else
			stream_end(exchange);
		return;
	}
	if (ask->begun && *ask->talk->name)
		answer_header(exchange, SESSION_HEADER, ask->talk->name);
	answer_json(exchange, *ask->talk->name ? 200 : status_for(document), document);
}

/* A question that cannot be asked is one that the client dismisses. */
static void question_dismiss(struct talk *talk, json_t *id)
{
	json_t *answer = rpc_result(id, json_pack("{s:s}", "action", "cancel"));

	engine_take(talk->engine, &(struct rpc){.document = answer, .kind = RPC_RESPONSE, .id = id});
	json_decref(answer);
}

static void on_send(void *userdata, json_t *document, const json_t *about)
{
	struct talk *talk = userdata;
	struct ask *ask = ask_of(talk, about);
	json_t *id = json_object_get(document, "id");
	bool asks = id && json_object_get(document, "method"), sent = false;

	if (ask && id && !asks) {
		answer_ask(ask, document);
		return;
	}
	json_incref(id);
	if (ask && exchange_accepts(ask->exchange, "text/event-stream")) {
		events_begin(ask->exchange);
		sent = stream_event(ask->exchange, "message", NULL, document);
	} else {
		json_decref(document);
	}
	if (asks && !sent)
		question_dismiss(talk, id);
	json_decref(id);
}

static void refuse(struct exchange *exchange, unsigned status, int code, const char *message)
{
	const struct ask *ask = exchange->state;

	answer_json(exchange, status, rpc_error(ask ? ask->rpc.id : NULL, code, message, NULL));
}

static void fail(struct exchange *exchange, unsigned status, const char *code, const char *sentence)
{
	(void)code;
	refuse(exchange, status, status == 400 ? RPC_INVALID_REQUEST : RPC_INTERNAL, sentence);
}

/* ---- a conversation begins ---- */

/* For one conversation more than a tenant may have, its own idle one goes that has not been used for the longest
 * time. Returns false if none is idle. */
static bool talk_make_room(struct server *server, const struct tenant *tenant)
{
	struct talk *oldest = NULL;
	size_t n = 0;

	for (struct talk *talk = state_of(server)->talks; talk; talk = talk->next) {
		if (talk->tenant != tenant || !*talk->name)
			continue;
		n++;
		if (!talk->asks && (!oldest || talk->used < oldest->used))
			oldest = talk;
	}
	if (n >= TALKS_MAX && oldest)
		talk_drop(server, oldest);
	return n < TALKS_MAX || oldest;
}

static void on_once_named(void *userdata, const char *session)
{
	const struct talk *talk = userdata;

	if (talk->saying)
		once_named(talk->saying->exchange, session);
}

static void on_once_end(void *userdata, const char *session)
{
	seat_end(((const struct talk *)userdata)->tenant, session);
}

static struct talk *talk_new(struct exchange *exchange, bool named)
{
	struct mcp_state *state = state_of(exchange->server);
	struct lair *lair = exchange_lair(exchange);
	struct mcp_options options = state->options;
	struct talk *talk;

	if (lair && named && !talk_make_room(exchange->server, exchange->tenant)) {
		refuse(exchange, 429, RPC_INTERNAL,
		       "this token has too many conversations, and all of them wait for answers");
		return NULL;
	}
	talk = lair ? calloc(1, sizeof(*talk)) : NULL;
	if (!talk || (named && text_random(talk->name, NAME_SIZE - 1))) {
		free(talk);
		return NULL;
	}
	talk->tenant = exchange->tenant;
	if (asprintf(&talk->fallback, "%smcp%s%.8s", talk->tenant->prefix, named ? "-" : "", talk->name) < 0)
		talk->fallback = NULL;
	if (*talk->tenant->prefix && asprintf(&talk->prefix, "%sonce-", talk->tenant->prefix) < 0)
		talk->prefix = NULL;
	talk->once = (struct mcp_once){
		.prefix = talk->prefix, .on_named = on_once_named, .end = on_once_end, .userdata = talk};
	options.loop = &exchange->server->loop;
	options.once = talk->prefix ? &talk->once : NULL;
	/* With tokens this is also the only session that resources list. */
	options.session = *talk->tenant->prefix ? talk->fallback : NULL;
	options.profile = talk->tenant->profiles ? talk->tenant->profiles[0] : NULL;
	talk->engine = talk->fallback && (talk->prefix || !*talk->tenant->prefix)
			       ? engine_new(&options, lair, talk->fallback, on_send, talk)
			       : NULL;
	if (!talk->engine) {
		talk_free(talk);
		refuse(exchange, 503, RPC_INTERNAL, "out of memory");
		return NULL;
	}
	talk->next = state->talks;
	state->talks = talk;
	return talk;
}

static struct talk *talk_find(const struct exchange *exchange, const char *name)
{
	for (struct talk *talk = state_of(exchange->server)->talks; talk; talk = talk->next)
		if (*talk->name && talk->tenant == exchange->tenant && strcmp(talk->name, name) == 0)
			return talk;
	return NULL;
}

/* ---- sessions of a tenant ---- */

/* Whether a handle, which names its session, is of one of the tenant's, or of a one-shot. */
static bool own_handle(const struct tenant *tenant, const json_t *handle)
{
	const char *text = json_string_value(handle), *at = text ? strchr(text, '@') : NULL;

	return !at || strncmp(at + 1, tenant->prefix, strlen(tenant->prefix)) == 0;
}

/* Ids in arguments are the tenant's own; what results say may be given back as well. */
static void own(const struct tenant *tenant, json_t *arguments, const char *key)
{
	const char *id = json_string_value(json_object_get(arguments, key));

	if (id && strncmp(id, tenant->prefix, strlen(tenant->prefix)) != 0)
		json_object_set_new(arguments, key, json_sprintf("%s%s", tenant->prefix, id));
}

static bool is_own(const struct tenant *tenant, const json_t *said)
{
	const char *method = json_string_value(json_object_get(said, "method"));
	json_t *arguments = json_object_get(json_object_get(said, "params"), "arguments");

	if (!*tenant->prefix)
		return true;
	own(tenant, arguments, "session_id");
	own(tenant, arguments, "new_session_id");
	/* Resources name sessions of everybody. */
	return own_handle(tenant, json_object_get(arguments, "handle")) &&
	       own_handle(tenant, json_object_get(json_object_get(said, "params"), "requestState")) &&
	       !(method && strncmp(method, "resources/", 10) == 0 &&
		 strcmp(method, "resources/templates/list") != 0);
}

/* A person's decision comes from the dashboard or from a program, not from a page that may merely ask. */
static bool is_decision(const json_t *said)
{
	return !json_object_get(said, "method") ||
	       json_object_get(json_object_get(said, "params"), "inputResponses");
}

/* ---- the headers of the stateless era ---- */

static const char *named_in(const char *method, const json_t *params)
{
	if (strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0)
		return json_string_value(json_object_get(params, "name"));
	return strcmp(method, "resources/read") == 0 ? json_string_value(json_object_get(params, "uri")) : NULL;
}

/* A header may be in base 64. */
static bool header_is(const char *header, const char *text)
{
	static const char before[] = "=?base64?", after[] = "?=";
	size_t n = sizeof(before) - 1, m = sizeof(after) - 1, used = 0, size;
	unsigned char decoded[4096];

	if (!header)
		return false;
	/* White space around it is ignored. */
	header += strspn(header, " \t");
	size = strlen(header);
	while (size > 0 && strchr(" \t", header[size - 1]))
		size--;
	if (size < n + m || strncmp(header, before, n) != 0 || strncmp(header + size - m, after, m) != 0)
		return size == strlen(text) && memcmp(header, text, size) == 0;
	return sodium_base642bin(decoded, sizeof(decoded), header + n, size - n - m, NULL, &used, NULL,
				 sodium_base64_VARIANT_ORIGINAL) == 0 &&
	       used == strlen(text) && memcmp(decoded, text, used) == 0;
}

static const char *meta_version(const json_t *said)
{
	const json_t *meta = json_object_get(json_object_get(said, "params"), "_meta");

	return json_string_value(json_object_get(meta, MCP_META("protocolVersion")));
}

static bool is_modern(const struct exchange *exchange, const json_t *said)
{
	const char *header = exchange_header(exchange, VERSION_HEADER);

	if (meta_version(said))
		return true;
	return header ? strcmp(header, MCP_MODERN) >= 0 : exchange_header(exchange, "Mcp-Method") != NULL;
}

static bool headers_match(struct exchange *exchange, const json_t *said, const char *method)
{
	const char *version = exchange_header(exchange, VERSION_HEADER);
	const char *name = named_in(method, json_object_get(said, "params"));

	if (!meta_version(said))
		refuse(exchange, 400, RPC_INVALID_PARAMS, "_meta: " MCP_META("protocolVersion") " is missing");
	else if (!json_is_object(json_object_get(json_object_get(json_object_get(said, "params"), "_meta"),
						 MCP_META("clientCapabilities"))))
		refuse(exchange, 400, RPC_INVALID_PARAMS,
		       "_meta: " MCP_META("clientCapabilities") " must be an object");
	else if (!version || strcmp(version, meta_version(said)) != 0)
		refuse(exchange, 400, RPC_MISMATCH, VERSION_HEADER " is not what _meta says");
	else if (!header_is(exchange_header(exchange, "Mcp-Method"), method))
		refuse(exchange, 400, RPC_MISMATCH, "Mcp-Method is not the method");
	else if (name && !header_is(exchange_header(exchange, "Mcp-Name"), name))
		refuse(exchange, 400, RPC_MISMATCH, "Mcp-Name is not what params say");
	else
		return true;
	return false;
}

static bool version_known(struct exchange *exchange)
{
	static const char *const known[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
	const char *version = exchange_header(exchange, VERSION_HEADER);

	for (size_t i = 0; version && i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i], version) == 0)
			return true;
	if (version)
		refuse(exchange, 400, RPC_INVALID_REQUEST, VERSION_HEADER " is none that this server speaks");
	return !version;
}

/* ---- requests ---- */

static struct talk *talk_of(struct exchange *exchange, struct ask *ask, const char *method)
{
	const char *name = exchange_header(exchange, SESSION_HEADER);
	struct talk *talk;

	if (is_modern(exchange, ask->rpc.document))
		return !ask->rpc.id || headers_match(exchange, ask->rpc.document, method)
			       ? talk_new(exchange, false)
			       : NULL;
	if (!version_known(exchange))
		return NULL;
	ask->begun = strcmp(method, "initialize") == 0;
	if (ask->begun)
		return talk_new(exchange, true);
	talk = name ? talk_find(exchange, name) : NULL;
	if (!name)
		refuse(exchange, 400, RPC_INVALID_REQUEST, SESSION_HEADER " is missing");
	else if (!talk)
		refuse(exchange, 404, RPC_INVALID_REQUEST, "there is no conversation of this " SESSION_HEADER);
	return talk;
}

/* Nobody answers a request that was cancelled: its stream ends. */
static void cancelled(const struct talk *talk, const json_t *said)
{
	const json_t *id = json_object_get(json_object_get(said, "params"), "requestId");

	for (struct ask *ask = id ? talk->asks : NULL; ask; ask = ask->next)
		if (json_equal(id, ask->rpc.id) && !ask->exchange->ended &&
		    (ask->exchange->streaming || !ask->exchange->response)) {
			events_begin(ask->exchange);
			stream_end(ask->exchange);
		}
}

static void pass_on(const struct ask *ask, struct talk *talk)
{
	talk->used = server_now();
	talk->saying = ask;
	engine_take(talk->engine, &ask->rpc);
	talk->saying = NULL;
}

/* A response of the client's person. In the stateless era there are none. */
static void answered(struct exchange *exchange, const struct ask *ask, struct talk *talk)
{
	if (*talk->name && ask->rpc.id)
		pass_on(ask, talk);
	answer_empty(exchange, 202);
}

static void say(struct exchange *exchange, struct ask *ask, struct talk *talk, const char *method)
{
	ask->talk = talk;
	ask->next = talk->asks;
	talk->asks = ask;
	pass_on(ask, talk);
	if (strcmp(method, "notifications/cancelled") == 0)
		cancelled(talk, ask->rpc.document);
	if (!ask->rpc.id && !exchange->response)
		answer_empty(exchange, 202);
	else if (!exchange->response && exchange_accepts(exchange, "text/event-stream"))
		exchange_alarm(exchange, ALIVE_SECONDS, events_begin);
}

/* A tool may open the session that it names, or the conversation's. Whether the tenant may have one more; if not,
 * the exchange has been answered, or begins once more. */
static bool sessions_admitted(struct exchange *exchange, const struct ask *ask, const char *method)
{
	const json_t *arguments = json_object_get(json_object_get(ask->rpc.document, "params"), "arguments");
	const char *id = json_string_value(json_object_get(arguments, "session_id"));
	const char *branch = json_string_value(json_object_get(arguments, "new_session_id"));
	const char *tool = json_string_value(json_object_get(json_object_get(ask->rpc.document, "params"), "name"));
	const char *name = exchange_header(exchange, SESSION_HEADER);
	const struct talk *talk = name ? talk_find(exchange, name) : NULL;
	char modern[64];

	if (strcmp(method, "tools/call") != 0 || !tool || strcmp(tool, "python_result") == 0 ||
	    strcmp(tool, "check_syntax") == 0)
		return true;
	if (strcmp(tool, "python_execute_once") == 0)
		return once_admitted(exchange);
	snprintf(modern, sizeof(modern), "%smcp", exchange->tenant->prefix);
	return session_admitted(exchange, id	 ? id
					  : talk ? talk->fallback
						 : modern) &&
	       (!branch || session_admitted(exchange, branch));
}

static void hear(struct exchange *exchange, struct ask *ask)
{
	const char *method = ask->rpc.method;
	struct talk *talk;

	if (!sessions_admitted(exchange, ask, method ? method : ""))
		return;
	/* An answer of the client has no method. */
	talk = talk_of(exchange, ask, method ? method : "");
	if (talk && method)
		say(exchange, ask, talk, method);
	else if (talk)
		answered(exchange, ask, talk);
}

static void post_begin(struct exchange *exchange)
{
	struct ask *ask;
	json_t *wrong;

	/* Once more, since the sessions had to be counted. */
	if (exchange->state) {
		hear(exchange, exchange->state);
		return;
	}
	ask = calloc(1, sizeof(*ask));
	if (!ask) {
		refuse(exchange, 503, RPC_INTERNAL, "out of memory");
		return;
	}
	ask->exchange = exchange;
	exchange->state = ask;
	exchange->free_state = ask_free;
	wrong = rpc_read(&ask->rpc, exchange_body(exchange), true);
	if (wrong) {
		answer_json(exchange, 400, wrong);
		return;
	}
	if (!is_own(exchange->tenant, ask->rpc.document))
		refuse(exchange, 403, RPC_INVALID_REQUEST, "this is not for the session of a token");
	else if (exchange->page == PAGE_NAMED && is_decision(ask->rpc.document))
		refuse(exchange, 403, RPC_INVALID_REQUEST, "calls are answered in the dashboard, or by a program");
	else
		hear(exchange, ask);
}

static void delete_begin(struct exchange *exchange)
{
	const char *name = exchange_header(exchange, SESSION_HEADER);
	struct talk *talk = name ? talk_find(exchange, name) : NULL;

	if (!name) {
		answer_header(exchange, "Allow", "POST");
		refuse(exchange, 405, RPC_INVALID_REQUEST, "there is no conversation without " SESSION_HEADER);
	} else if (!talk) {
		refuse(exchange, 404, RPC_INVALID_REQUEST, "there is no conversation of this " SESSION_HEADER);
	} else {
		talk_drop(exchange->server, talk);
		answer_empty(exchange, 204);
	}
}

/* ---- the door ---- */

static int open_door(struct server *server)
{
	server->doors.mcp = calloc(1, sizeof(struct mcp_state));
	return server->doors.mcp ? 0 : -ENOMEM;
}

static void close_door(struct server *server)
{
	struct mcp_state *state = state_of(server);

	while (state && state->talks)
		talk_drop(server, state->talks);
	freep(&server->doors.mcp);
}

static void tick(struct server *server, double now)
{
	for (struct talk *talk = state_of(server)->talks, *next; talk; talk = next) {
		next = talk->next;
		if (talk->tenant->revoked || (*talk->name && !talk->asks && talk->used + TALK_SECONDS < now))
			talk_drop(server, talk);
	}
}

static bool claims(const struct exchange *exchange)
{
	return exchange->target.n == 1 && strcmp(exchange->target.segments[0], "mcp") == 0;
}

static const struct route routes[] = {
	{.method = "POST", .path = "/mcp", .begin = post_begin, .summary = "", .flags = ROUTE_HIDDEN},
	{.method = "DELETE", .path = "/mcp", .begin = delete_begin, .summary = "", .flags = ROUTE_HIDDEN},
};

const struct door mcp_door = {
	.name = "mcp",
	.claims = claims,
	.routes = routes,
	.n_routes = ARRAY_SIZE(routes),
	.fail = fail,
	.open = open_door,
	.close = close_door,
	.tick = tick,
};
