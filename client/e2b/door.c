/* The door of E2B: its routes, its tokens, its forms of errors. */
#include "e2b.h"

#include <stdio.h>
#include <stdlib.h>

#define INTERPRETER_PORT ":49999"
#define ENVD_PORT ":49983"

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), n = strlen(end);

	return size >= n && strcmp(text + size - n, end) == 0;
}

bool is_fixed_port(const struct server *server)
{
	return ends_with(server->address, INTERPRETER_PORT) || ends_with(server->address, ENVD_PORT);
}

static const char *segment(const struct exchange *exchange, size_t i)
{
	return i < exchange->target.n ? exchange->target.segments[i] : "";
}

static bool is_control(const struct exchange *exchange)
{
	return strcmp(segment(exchange, 0), "sandboxes") == 0 ||
	       (strcmp(segment(exchange, 0), "v2") == 0 && strcmp(segment(exchange, 1), "sandboxes") == 0);
}

static bool claims(const struct exchange *exchange)
{
	static const char *const first[] = {"contexts", "files", "process.Process", "filesystem.Filesystem"};

	if (exchange_header(exchange, "E2b-Sandbox-Id") || exchange_header(exchange, "X-API-KEY") ||
	    is_fixed_port(exchange->server))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		if (strcmp(segment(exchange, 0), first[i]) == 0)
			return true;
	return is_control(exchange);
}

bool is_connect(const struct exchange *exchange)
{
	return strcmp(segment(exchange, 0), "process.Process") == 0 ||
	       strcmp(segment(exchange, 0), "filesystem.Filesystem") == 0;
}

static const char *key_of(const struct exchange *exchange)
{
	const char *key = exchange_header(exchange, "X-API-KEY"),
		   *value = exchange_header(exchange, "Authorization");

	if (key || !value || strncasecmp(value, "Bearer ", 7) != 0)
		return key;
	return value + 7;
}

/* The token of a sandbox is for requests in that one; requests about sandboxes need the key. */
static struct tenant *asker(const struct exchange *exchange)
{
	struct tenant *tenant = is_control(exchange) ? NULL : sandbox_asker(exchange);

	return tenant ? tenant : tenant_of(exchange->server, key_of(exchange));
}

/* ---- errors ---- */

static const char *connect_code(unsigned status)
{
	static const struct {
		unsigned status;
		const char *code;
	} codes[] = {
		{400, "invalid_argument"}, {401, "unauthenticated"},	 {403, "permission_denied"},
		{404, "not_found"},	   {409, "failed_precondition"}, {413, "resource_exhausted"},
		{422, "unimplemented"},	   {429, "resource_exhausted"},	 {503, "unavailable"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return "internal";
}

static void fail(struct exchange *exchange, unsigned status, const char *code, const char *sentence)
{
	(void)code;
	if (is_connect(exchange) && status != 502)
		connect_fail(exchange, connect_code(status), "%s", sentence);
	else
		answer_json(exchange, status, json_pack("{s:i, s:s}", "code", (int)status, "message", sentence));
}

void e2b_lost(struct exchange *exchange)
{
	const struct work *work = exchange->state;

	/* The SDKs look for these words. */
	if (work && work->stream)
		connect_end(exchange, "unavailable", "The sandbox was not found");
	else
		answer_json(exchange, 502,
			    json_pack("{s:i, s:s}", "code", 502, "message", "The sandbox was not found"));
}

void e2b_refuse(struct exchange *exchange)
{
	int error = lair_outcome(exchange->call);
	const struct work *work = exchange->state;

	if (error == LAIR_E_NO_SESSION || error == LAIR_E_GONE)
		e2b_lost(exchange);
	else if (work && work->stream)
		connect_end(exchange, connect_code(status_of(error)), lair_call_error(exchange->call));
	else
		exchange_refuse(exchange);
}

bool e2b_body(struct exchange *exchange, struct lair_text body, json_t **documentp)
{
	json_error_t error;

	*documentp = body.size > 0 ? json_loadb(body.data, body.size, 0, &error) : json_object();
	if (json_is_object(*documentp))
		return true;
	json_decref(steal_ptr(documentp));
	answer_problem(exchange, 400, "bad_request", "the body is no JSON object");
	return false;
}

/* ---- routes ---- */

static void alive(struct exchange *exchange)
{
	const char *port = exchange_header(exchange, "E2b-Sandbox-Port");

	if (lair_outcome(exchange->call))
		e2b_lost(exchange);
	else if ((port && strcmp(port, "49999") == 0) ||
		 (!port && ends_with(exchange->server->address, INTERPRETER_PORT)))
		answer_text(exchange, 200, "application/json", lair_text("\"OK\""));
	else
		answer_empty(exchange, 204);
}

static void health_found(struct exchange *exchange)
{
	exchange_wait_any(exchange,
			  lair_info(exchange->tenant->lair, &exchange->call, sandbox_of(exchange)->session), alive);
}

static void health_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), health_found);
}

static void envs_found(struct exchange *exchange)
{
	answer_json(exchange, 200, json_incref(sandbox_of(exchange)->envs));
}

static void envs_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), envs_found);
}

#define ROUTE(m, p, b, f)                                                                                          \
	{                                                                                                          \
		.method = (m), .path = (p), .begin = (b), .summary = "", .flags = ROUTE_HIDDEN | (f)               \
	}

static const struct route routes[] = {
	ROUTE("POST", "/v2/sandboxes", create_begin, 0),
	ROUTE("POST", "/sandboxes", create_begin, 0),
	ROUTE("GET", "/v2/sandboxes", list_begin, 0),
	ROUTE("GET", "/sandboxes", list_begin, 0),
	ROUTE("GET", "/sandboxes/{id}", info_begin, 0),
	ROUTE("DELETE", "/sandboxes/{id}", kill_begin, 0),
	ROUTE("POST", "/v2/sandboxes/{id}/connect", connect_begin, 0),
	ROUTE("POST", "/sandboxes/{id}/connect", connect_begin, 0),
	ROUTE("POST", "/sandboxes/{id}/resume", connect_begin, 0),
	ROUTE("POST", "/sandboxes/{id}/timeout", timeout_begin, 0),
	ROUTE("POST", "/sandboxes/{id}/pause", pause_begin, 0),
	ROUTE("GET", "/sandboxes/{id}/metrics", sandbox_metrics_begin, 0),

	ROUTE("GET", "/health", health_begin, ROUTE_ASIDE),
	ROUTE("GET", "/envs", envs_begin, 0),
	ROUTE("POST", "/execute", execute_code_begin, 0),
	ROUTE("GET", "/contexts", contexts_list_begin, 0),
	ROUTE("POST", "/contexts", contexts_create_begin, 0),
	ROUTE("DELETE", "/contexts/{context}", context_remove_begin, 0),
	ROUTE("POST", "/contexts/{context}/restart", context_restart_begin, 0),

	ROUTE("GET", "/files", file_get_begin, 0),
	ROUTE("POST", "/files", file_put_begin, ROUTE_RAW),
	ROUTE("POST", "/filesystem.Filesystem/WatchDir", watch_begin, 0),
	ROUTE("POST", "/filesystem.Filesystem/CreateWatcher", watcher_create_begin, 0),
	ROUTE("POST", "/filesystem.Filesystem/GetWatcherEvents", watcher_events_begin, 0),
	ROUTE("POST", "/filesystem.Filesystem/RemoveWatcher", watcher_remove_begin, 0),
	ROUTE("POST", "/filesystem.Filesystem/{call}", filesystem_begin, 0),
	ROUTE("POST", "/process.Process/Start", process_start_begin, 0),
	ROUTE("POST", "/process.Process/Connect", process_connect_begin, 0),
	ROUTE("POST", "/process.Process/List", process_list_begin, 0),
	ROUTE("POST", "/process.Process/SendInput", process_input_begin, 0),
	ROUTE("POST", "/process.Process/StreamInput", process_stream_begin, ROUTE_RAW),
	ROUTE("POST", "/process.Process/CloseStdin", process_close_begin, 0),
	ROUTE("POST", "/process.Process/SendSignal", process_signal_begin, 0),
	ROUTE("POST", "/process.Process/Update", process_update_begin, 0),
};

static int open_door(struct server *server)
{
	server->doors.e2b = calloc(1, sizeof(struct e2b));
	return server->doors.e2b ? 0 : -ENOMEM;
}

static void close_door(struct server *server)
{
	if (server->doors.e2b)
		sandboxes_close(server);
	freep(&server->doors.e2b);
}

const struct door e2b_door = {
	.name = "e2b",
	.claims = claims,
	.routes = routes,
	.n_routes = ARRAY_SIZE(routes),
	.credential = key_of,
	.asker = asker,
	.fail = fail,
	.open = open_door,
	.close = close_door,
	.tick = sandboxes_tick,
};
