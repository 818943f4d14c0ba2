/* The protocol with one server: versions, the list of tools, calls. It is a machine of four states, fed with
 * messages by process.c and http.c. A server of the handshake era is greeted with `initialize`; if it knows no such
 * request, it is of the stateless era, in which each request says its version. */
#include "upstream.h"

#include "base/json.h"

#include "proto/clock.h"

#include <stdarg.h>
#include <stdio.h>

/* A server that is fetched when it is started for the first time takes its time. */
#define START_PATIENCE 60.0
#define LIST_PATIENCE 60.0
#define PAGES_MAX 100
/* With what it lies in, it is as deep as a message may be. */
#define STRUCTURE_DEPTH 12
/* Before a server that has failed is started again: nothing the first time, then this, then twice as long each
 * time. A call waits for it, if that is soon. */
#define RETRY_FIRST 0.5
#define RETRY_SOON 2.0
#define RETRY_MAX 60.0
/* A server that was up for so long had not failed to start. */
#define UP_LONG 10.0

/* ---- calls ---- */

static struct servers_call *call_free(struct servers_call *call)
{
	free(call->tool);
	json_decref(call->arguments);
	free(call);
	return NULL;
}

static void call_end(struct servers_call *call, json_t *result, const char *error, const char *text)
{
	call->done(result, error, text, call->userdata);
	call_free(call);
}

static void call_wait(struct servers_call *call)
{
	struct servers_call **end = &call->upstream->waiting;

	while (*end)
		end = &(*end)->next;
	call->next = NULL;
	call->exchange = NULL;
	*end = call;
}

/* ---- sending ---- */

static int transport_send(struct upstream *upstream, json_t *document, json_int_t id)
{
	if (upstream->process)
		return process_send(upstream->process, document);
	if (upstream->http)
		return http_send(upstream->http, document, id);
	json_decref(document);
	return -ENOTCONN;
}

/* In the stateless era, each request has its version and client. */
static void meta_add(const struct upstream *upstream, json_t *params)
{
	json_t *meta = upstream->modern ? rpc_meta(params) : NULL;

	if (!meta)
		return;
	json_object_set_new(meta, MCP_META("protocolVersion"), json_string(MCP_MODERN));
	json_object_set_new(meta, MCP_META("clientCapabilities"), json_object());
	json_object_set_new(meta, MCP_META("clientInfo"), mcp_info());
}

static void notify(struct upstream *upstream, const char *method, json_t *params)
{
	(void)transport_send(upstream, rpc_notification(method, params), 0);
}

/* @params is taken over. Returns the exchange, or NULL without memory, or if the server cannot be reached. */
static struct exchange *request_send(struct upstream *upstream, enum exchange_kind kind, const char *method,
				     json_t *params)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	json_t *document;

	if (!exchange) {
		json_decref(params);
		return NULL;
	}
	meta_add(upstream, params);
	exchange->kind = kind;
	document = rpc_ask(&upstream->asker, &exchange->asked, method, params);
	if (kind == EXCHANGE_CALL)
		json_object_set_new(rpc_meta(json_object_get(document, "params")), "progressToken",
				    json_integer(exchange->asked.id));
	if (!transport_send(upstream, document, exchange->asked.id))
		return exchange;
	list_remove(&exchange->asked.node);
	free(exchange);
	return NULL;
}

/* Takes it out of the list; the caller's to free. */
static struct exchange *exchange_take(struct upstream *upstream, json_t *id)
{
	struct rpc_asked *asked = rpc_answered(&upstream->asker, id);

	json_decref(id);
	return asked ? container_of(asked, struct exchange, asked) : NULL;
}

/* Any one, out of the list; NULL: there is none. */
static struct exchange *exchange_first(struct upstream *upstream)
{
	struct list *first = list_first(&upstream->asker.asked);

	if (first)
		list_remove(first);
	return first ? container_of(first, struct exchange, asked.node) : NULL;
}

static bool call_send(struct servers_call *call)
{
	struct upstream *upstream = call->upstream;
	struct exchange *exchange =
		request_send(upstream, EXCHANGE_CALL, "tools/call",
			     json_pack("{s:s, s:O}", "name", call->tool, "arguments", call->arguments));

	if (!exchange)
		return false;
	exchange->call = call;
	call->exchange = exchange;
	return true;
}

/* ---- the life of a server ---- */

static void transport_end(struct upstream *upstream)
{
	if (upstream->process)
		process_end(upstream->process);
	if (upstream->http)
		http_end(upstream->http);
	upstream->process = NULL;
	upstream->http = NULL;
}

static void list_drop(struct upstream *upstream)
{
	json_decref(upstream->listed);
	json_decref(upstream->seen);
	upstream->listed = upstream->seen = NULL;
	upstream->list_again = false;
}

/* Back to the state before its start. Its functions stay. */
static void upstream_down(struct upstream *upstream)
{
	transport_end(upstream);
	list_drop(upstream);
	upstream->state = UPSTREAM_DOWN;
	upstream->modern = false;
	upstream->version = NULL;
	upstream->due = 0;
}

static void failure_set(struct upstream *upstream, const char *format, ...) _printf_(2, 3);

static void failure_set(struct upstream *upstream, const char *format, ...)
{
	va_list args;

	free(upstream->failure);
	va_start(args, format);
	if (vasprintf(&upstream->failure, format, args) < 0)
		upstream->failure = NULL;
	va_end(args);
	upstream->told = false;
}

static void retry_set(struct upstream *upstream)
{
	double now = clock_seconds(), pause;

	if (upstream->up_since && now - upstream->up_since >= UP_LONG)
		upstream->failures = 0;
	pause = upstream->failures ? RETRY_FIRST : 0;
	for (unsigned i = 1; i < upstream->failures && pause < RETRY_MAX; i++)
		pause *= 2;
	upstream->failures++;
	upstream->up_since = 0;
	upstream->retry_at = now + MIN(pause, RETRY_MAX);
}

/* Calls that are out may have been done, those that wait have not. */
static void calls_fail(struct upstream *upstream)
{
	const char *why = upstream->failure ? upstream->failure : "out of memory";
	struct exchange *exchange;
	struct servers_call *call;
	char *text = NULL;

	while ((exchange = exchange_first(upstream))) {
		if (exchange->call && asprintf(&text, "%s. It had the call, so this may have been done", why) < 0)
			text = NULL;
		if (exchange->call)
			call_end(exchange->call, NULL, "ConnectionError", text ? text : why);
		free(text);
		text = NULL;
		free(exchange);
	}
	while ((call = upstream->waiting)) {
		upstream->waiting = call->next;
		call_end(call, NULL, "ConnectionError", why);
	}
}

void upstream_lost(struct upstream *upstream, const char *why)
{
	bool ready = upstream->state == UPSTREAM_READY;
	char said[TEXT_END_SIZE] = "";

	if (upstream->process)
		process_said(upstream->process, said);
	failure_set(upstream, "Server '%s' %s: %s%s%s", upstream->name, ready ? "has ended" : "is not available",
		    why, *said ? "; it said: " : "", said);
	retry_set(upstream);
	upstream_down(upstream);
	calls_fail(upstream);
}

void upstream_late(struct upstream *upstream)
{
	char why[64];

	snprintf(why, sizeof(why), "it was not ready within %.0f s", START_PATIENCE);
	upstream_lost(upstream, why);
}

static void lost_without_memory(struct upstream *upstream)
{
	upstream_lost(upstream, "no memory, or no way to send");
}

void upstream_start(struct upstream *upstream)
{
	_cleanup_(freep) char *why = NULL;
	int r;

	if (upstream->state != UPSTREAM_DOWN || upstream->retry_at > clock_seconds())
		return;
	upstream->state = UPSTREAM_STARTING;
	upstream->due = clock_seconds() + START_PATIENCE;
	r = json_object_get(upstream->entry, "url") ? http_start(upstream, &why) : process_start(upstream, &why);
	if (r)
		upstream_lost(upstream, why ? why : strerror(-r));
	else if (!request_send(upstream, EXCHANGE_INITIALIZE, "initialize",
			       json_pack("{s:s, s:{}, s:o}", "protocolVersion", mcp_legacy[0], "capabilities",
					 "clientInfo", mcp_info())))
		lost_without_memory(upstream);
}

/* ---- the list of tools ---- */

static void list_begin(struct upstream *upstream)
{
	list_drop(upstream);
	upstream->listed = json_array();
	upstream->seen = json_object();
	if (upstream->state != UPSTREAM_READY) {
		upstream->state = UPSTREAM_LISTING;
		upstream->due = clock_seconds() + LIST_PATIENCE;
	}
	if (!request_send(upstream, EXCHANGE_LIST, "tools/list", json_object()))
		lost_without_memory(upstream);
}

static void list_ended(struct upstream *upstream)
{
	bool again = upstream->list_again;

	json_decref(upstream->functions);
	upstream->functions = steal_ptr(&upstream->listed);
	upstream->size = tools_size(upstream->functions);
	list_drop(upstream);
	upstream->servers->changed = true;
	upstream->due = 0;
	if (upstream->state == UPSTREAM_LISTING) {
		upstream->state = UPSTREAM_READY;
		upstream->up_since = clock_seconds();
		freep(&upstream->failure);
	}
	if (again)
		list_begin(upstream);
}

static void list_take(struct upstream *upstream, json_t *result)
{
	const char *wrong = tools_take(upstream, result), *cursor;

	if (wrong) {
		upstream_lost(upstream, wrong);
		return;
	}
	cursor = json_text_value(json_object_get(result, "nextCursor"));
	if (!cursor || !*cursor) {
		list_ended(upstream);
	} else if (json_object_get(upstream->seen, cursor) || json_object_size(upstream->seen) >= PAGES_MAX) {
		upstream_lost(upstream, "its list of tools has no end");
	} else {
		json_object_set_new(upstream->seen, cursor, json_true());
		if (!request_send(upstream, EXCHANGE_LIST, "tools/list", json_pack("{s:s}", "cursor", cursor)))
			lost_without_memory(upstream);
	}
}

static void tools_changed(struct upstream *upstream)
{
	if (upstream->listed)
		upstream->list_again = true;
	else if (upstream->state == UPSTREAM_READY)
		list_begin(upstream);
}

/* ---- versions ---- */

static void greeted(struct upstream *upstream, json_t *capabilities)
{
	if (json_is_object(json_object_get(capabilities, "tools"))) {
		list_begin(upstream);
		return;
	}
	list_drop(upstream);
	upstream->listed = json_array();
	upstream->state = UPSTREAM_LISTING;
	list_ended(upstream);
}

static void initialize_take(struct upstream *upstream, json_t *result)
{
	int version = mcp_legacy_find(json_string_value(json_object_get(result, "protocolVersion")));

	if (version < 0) {
		upstream_lost(upstream, "it speaks no version of the protocol that is known here");
		return;
	}
	upstream->version = mcp_legacy[version];
	notify(upstream, "notifications/initialized", json_object());
	if (upstream->http)
		http_listen(upstream->http);
	greeted(upstream, json_object_get(result, "capabilities"));
}

/* It does not know `initialize`. */
static void discover(struct upstream *upstream)
{
	upstream->modern = true;
	upstream->version = MCP_MODERN;
	if (!request_send(upstream, EXCHANGE_DISCOVER, "server/discover", json_object()))
		lost_without_memory(upstream);
}

static void discover_take(struct upstream *upstream, json_t *result)
{
	json_t *versions = json_object_get(result, "supportedVersions"), *version;
	bool known = false;
	size_t i;

	json_array_foreach(versions, i, version)
	{
		known |= json_is_string(version) && strcmp(json_string_value(version), MCP_MODERN) == 0;
	}
	if (!known) {
		upstream_lost(upstream, "it speaks no version of the protocol that is known here");
		return;
	}
	(void)request_send(upstream, EXCHANGE_LISTEN, "subscriptions/listen",
			   json_pack("{s:{s:b}}", "notifications", "toolsListChanged", 1));
	greeted(upstream, json_object_get(result, "capabilities"));
}

/* ---- messages ---- */

/* How deep it is nested, or @most. */
static unsigned depth_of(const json_t *value, unsigned most)
{
	unsigned depth = 0;
	const char *key;
	json_t *item;
	size_t i;

	if (most == 0)
		return 0;
	json_object_foreach((json_t *)value, key, item)
	{
		depth = MAX(depth, depth_of(item, most - 1));
	}
	json_array_foreach(value, i, item)
	{
		depth = MAX(depth, depth_of(item, most - 1));
	}
	return depth + 1;
}

/* The parts of a result for a cell. A value that is nested deeper than messages may be is sent as text.
 * New. */
static json_t *result_for_cells(const json_t *result)
{
	json_t *structured = json_object_get(result, "structuredContent");
	json_t *made = json_pack("{s:O*, s:O*}", "content", json_object_get(result, "content"), "isError",
				 json_object_get(result, "isError"));

	if (structured && depth_of(structured, STRUCTURE_DEPTH) < STRUCTURE_DEPTH) {
		json_object_set(made, "structuredContent", structured);
	} else if (structured) {
		_cleanup_(freep) char *text = json_compact(structured);

		json_object_set_new(made, "structuredJson", text ? json_string(text) : NULL);
	}
	return made;
}

/* @made is taken over. */
static void call_succeeded(struct servers_call *call, json_t *made)
{
	call_end(call, made, made ? NULL : "MemoryError", "out of memory");
	json_decref(made);
}

static void call_take(struct servers_call *call, json_t *result)
{
	const char *type = json_string_value(json_object_get(result, "resultType"));

	if (!json_is_object(result))
		call_end(call, NULL, "MCPError", "the server's result is no object");
	else if (type && strcmp(type, "complete") != 0)
		call_end(call, NULL, "MCPError", "the server asks for something that cannot be given to it");
	else
		call_succeeded(call, result_for_cells(result));
}

static void exchange_succeeded(struct upstream *upstream, const struct exchange *exchange, json_t *result)
{
	switch (exchange->kind) {
	case EXCHANGE_INITIALIZE:
		initialize_take(upstream, result);
		break;
	case EXCHANGE_DISCOVER:
		discover_take(upstream, result);
		break;
	case EXCHANGE_LIST:
		list_take(upstream, result);
		break;
	case EXCHANGE_CALL:
		call_take(exchange->call, result);
		break;
	case EXCHANGE_LISTEN:
		break;
	}
}

static void exchange_failed(struct upstream *upstream, const struct exchange *exchange, const char *text)
{
	switch (exchange->kind) {
	case EXCHANGE_INITIALIZE:
		failure_set(upstream, "%s", text);
		discover(upstream);
		break;
	case EXCHANGE_DISCOVER:
		/* Its error for `initialize` is more to the point. */
		{
			_cleanup_(freep) char *first = steal_ptr(&upstream->failure);

			upstream_lost(upstream, first ? first : text);
		}
		break;
	case EXCHANGE_LIST:
		upstream_lost(upstream, text);
		break;
	case EXCHANGE_CALL:
		call_end(exchange->call, NULL, "MCPError", text);
		break;
	case EXCHANGE_LISTEN:
		break;
	}
}

static void response_take(struct upstream *upstream, json_t *document)
{
	json_t *result = json_object_get(document, "result");
	struct exchange *exchange = exchange_take(upstream, json_incref(json_object_get(document, "id")));
	const char *text = json_text_value(json_object_get(json_object_get(document, "error"), "message"));

	if (!exchange)
		return;
	if (upstream->http)
		http_answered(upstream->http, exchange->asked.id);
	if (result)
		exchange_succeeded(upstream, exchange, result);
	else
		exchange_failed(upstream, exchange, text && *text ? text : "the server gives no reason");
	free(exchange);
}

/* A request of the server: only ping can be answered. */
static void request_take(struct upstream *upstream, const struct rpc *rpc)
{
	json_t *answer = strcmp(rpc->method, "ping") == 0
				 ? rpc_result(rpc->id, json_object())
				 : rpc_error(rpc->id, RPC_NO_METHOD, "there is no such method here", NULL);

	(void)transport_send(upstream, answer, 0);
}

static void progress_take(struct upstream *upstream, json_t *params)
{
	json_t *token = json_object_get(params, "progressToken");

	struct exchange *it;

	list_for_each (it, &upstream->asker.asked, asked.node)
		if (it->call && it->call->progress && json_is_integer(token) &&
		    it->asked.id == json_integer_value(token))
			it->call->progress(params, it->call->userdata);
}

void upstream_message(struct upstream *upstream, struct lair_text line)
{
	struct rpc rpc;
	json_t *error = rpc_read(&rpc, line, false);

	/* Some servers write to stdout what belongs into a log. */
	if (error)
		json_decref(error);
	else if (rpc.kind == RPC_RESPONSE)
		response_take(upstream, rpc.document);
	else if (rpc.kind == RPC_REQUEST)
		request_take(upstream, &rpc);
	else if (strcmp(rpc.method, "notifications/tools/list_changed") == 0)
		tools_changed(upstream);
	else if (strcmp(rpc.method, "notifications/progress") == 0)
		progress_take(upstream, rpc.params);
	rpc_deinit(&rpc);
}

void upstream_unanswered(struct upstream *upstream, json_int_t id, const char *why, bool refused)
{
	struct exchange *exchange = exchange_take(upstream, json_integer(id));
	_cleanup_(freep) char *text = NULL;

	if (!exchange)
		return;
	if (exchange->kind == EXCHANGE_CALL) {
		if (asprintf(&text, "Server '%s': %s%s", upstream->name, why,
			     refused ? "" : ". It may have had the call, so this may have been done") < 0)
			text = NULL;
		call_end(exchange->call, NULL, "ConnectionError", text ? text : why);
	} else if (refused) {
		exchange_failed(upstream, exchange, why);
	} else if (exchange->kind != EXCHANGE_LISTEN) {
		upstream_lost(upstream, why);
	}
	free(exchange);
}

void upstream_forgotten(struct upstream *upstream, json_int_t id)
{
	struct exchange *exchange = exchange_take(upstream, json_integer(id));
	struct servers_call *call = exchange ? exchange->call : NULL;

	free(exchange);
	if (upstream->state != UPSTREAM_READY || (call && call->again)) {
		if (call)
			call_end(call, NULL, "ConnectionError", "the server has forgotten its session");
		upstream_lost(upstream, "it has forgotten its session");
		return;
	}
	if (call) {
		call->again = true;
		call_wait(call);
	}
	upstream_down(upstream);
	upstream_start(upstream);
}

/* ---- calls from outside ---- */

void upstream_settle(struct upstream *upstream)
{
	struct servers_call *call;

	while ((call = upstream->waiting) && upstream->state == UPSTREAM_READY) {
		upstream->waiting = call->next;
		if (!call_send(call))
			call_end(call, NULL, "ConnectionError", "the call could not be sent");
	}
	if (upstream->waiting && upstream->state == UPSTREAM_DOWN) {
		if (upstream->retry_at > clock_seconds() + RETRY_SOON)
			calls_fail(upstream);
		else
			upstream_start(upstream);
	}
}

double upstream_due(const struct upstream *upstream)
{
	double now = clock_seconds();
	bool down = upstream->state == UPSTREAM_DOWN;

	if (down && upstream->failure && !upstream->told)
		return now;
	if (upstream->waiting && (down || upstream->state == UPSTREAM_READY))
		return down && upstream->retry_at <= now + RETRY_SOON ? MAX(upstream->retry_at, now) : now;
	return upstream->due;
}

int servers_call(struct servers *servers, struct servers_call **callp, const char *function, json_t *arguments,
		 servers_done *done, servers_progress *progress, void *userdata)
{
	struct servers_call *call = calloc(1, sizeof(*call));
	struct upstream *upstream = servers->upstreams;
	json_t *found = NULL;

	while (upstream && !(found = tools_find(upstream, function)))
		upstream = upstream->next;
	if (!call || !found) {
		free(call);
		json_decref(arguments);
		return found ? -ENOMEM : -ENOENT;
	}
	*call = (struct servers_call){.upstream = upstream,
				      .tool = strdup(json_string_value(json_object_get(found, "tool"))),
				      .arguments = arguments,
				      .done = done,
				      .progress = progress,
				      .userdata = userdata};
	if (!call->tool) {
		call_free(call);
		return -ENOMEM;
	}
	call_wait(call);
	servers_touch(servers);
	*callp = call;
	return 0;
}

static void waiting_drop(struct servers_call *call)
{
	struct servers_call **at = &call->upstream->waiting;

	while (*at && *at != call)
		at = &(*at)->next;
	if (*at)
		*at = call->next;
}

void servers_cancel(struct servers_call *call)
{
	struct upstream *upstream = call->upstream;

	if (!call->exchange) {
		waiting_drop(call);
	} else {
		json_t *withdrawal = rpc_withdraw(&call->exchange->asked, "nobody waits for it");

		/* Over HTTP in the stateless era, the end of the connection says so. */
		if (upstream->http && upstream->modern)
			json_decref(withdrawal);
		else
			(void)transport_send(upstream, withdrawal, 0);
		if (upstream->http)
			http_drop(upstream->http, call->exchange->asked.id);
		free(call->exchange);
	}
	servers_touch(upstream->servers);
	call_free(call);
}

/* ---- made and freed ---- */

int upstream_new(struct upstream **upstreamp, struct servers *servers, const char *name, json_t *entry)
{
	struct upstream *upstream = calloc(1, sizeof(*upstream));

	if (!upstream)
		return -ENOMEM;
	upstream->servers = servers;
	rpc_asker_init(&upstream->asker);
	upstream->entry = json_incref(entry);
	upstream->name = strdup(name);
	*upstreamp = upstream;
	if (upstream->name)
		return 0;
	*upstreamp = upstream_free(upstream);
	return -ENOMEM;
}

struct upstream *upstream_free(struct upstream *upstream)
{
	struct exchange *exchange;
	struct servers_call *call;

	upstream_down(upstream);
	while ((exchange = exchange_first(upstream))) {
		if (exchange->call)
			call_free(exchange->call);
		free(exchange);
	}
	while ((call = upstream->waiting)) {
		upstream->waiting = call->next;
		call_free(call);
	}
	free(upstream->name);
	free(upstream->alias);
	free(upstream->failure);
	json_decref(upstream->entry);
	json_decref(upstream->functions);
	free(upstream);
	return NULL;
}
