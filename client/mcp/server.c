/* The server: one thread, one blocking call. Lines come in, documents go out, and between them requests wait for
 * the daemon, any number side by side. The process is nobody's session: it can be started twice, killed, or its
 * input closed, and all that is lost is the answers nobody reads. */
#include "server.h"

#include "tools.h"
#include "versions.h"

#include "resources.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#define LINE_SIZE_MAX ((size_t)32 << 20)
#define REQUESTS_MAX 1000
/* No more is read while so much waits to be written. */
#define OUTBOX_FULL ((size_t)16 << 20)
/* After the end of input, answers that are on their way have so long; then cells are interrupted, and have it
 * again. */
#define END_PATIENCE 1.0

double server_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void server_init(struct server *server, const struct mcp_options *options, int in, int out)
{
	*server = (struct server){.options = options};
	lines_init(&server->input, in);
	server->input.size_max = LINE_SIZE_MAX;
	outbox_init(&server->outbox, out);
}

void server_deinit(struct server *server)
{
	while (server->requests)
		request_drop(server->requests);
	server->lair = lair_free(server->lair);
	lines_deinit(&server->input);
	outbox_deinit(&server->outbox);
}

void server_send(struct server *server, json_t *document)
{
	if (server->mute)
		json_decref(document);
	else if (outbox_add(&server->outbox, document))
		server->error = -ENOMEM;
}

int server_connect(struct server *server, struct lair **lairp, bool start, const char **sentencep)
{
	struct lair_options options = server->options->lair;
	int r = 0;

	/* A handle that must not start a daemon is only good for as long as there is one. */
	if (server->lair && lair_fd(server->lair) < 0)
		server->lair = lair_free(server->lair);
	options.no_start = options.no_start || !start;
	if (!server->lair)
		r = lair_new(&server->lair, &options);
	if (r) {
		*sentencep = strerror(-r);
		return r;
	}
	*lairp = server->lair;
	r = lair_connect(server->lair);
	*sentencep = lair_error(server->lair);
	return r;
}

/* ---- methods ---- */

static void ping(struct request *request)
{
	request_reply(request, json_object());
}

/* What there is to say goes to stderr, whatever the level. */
static void logging_set_level(struct request *request)
{
	static const char *const levels[] = {"debug", "info",	  "notice", "warning",
					     "error", "critical", "alert",  "emergency"};
	const char *level = json_text_value(json_object_get(request->arguments, "level"));

	for (size_t i = 0; level && i < ARRAY_SIZE(levels); i++) {
		if (strcmp(level, levels[i]) == 0) {
			request_reply(request, json_object());
			return;
		}
	}
	request_refuse(request, RPC_INVALID_PARAMS, "there is no such level", NULL);
}

/* Nothing of what can be listened for is ever said, so this is acknowledged with nothing and stays open. */
static void subscriptions_listen(struct request *request)
{
	server_send(request->server,
		    rpc_notification("notifications/subscriptions/acknowledged",
				     json_pack("{s:{s:O}, s:{}}", "_meta", "io.modelcontextprotocol/subscriptionId",
					       request->id, "notifications")));
}

enum { LEGACY = 1, MODERN = 2 };

static const struct method {
	const char *name;
	unsigned eras;
	void (*run)(struct request *request);
} methods[] = {
	{"initialize", LEGACY, versions_initialize},
	{"server/discover", MODERN, versions_discover},
	{"ping", LEGACY, ping},
	{"logging/setLevel", LEGACY, logging_set_level},
	{"tools/list", LEGACY | MODERN, tools_list},
	{"tools/call", LEGACY | MODERN, tools_call},
	{"resources/list", LEGACY | MODERN, resources_list},
	{"resources/templates/list", LEGACY | MODERN, resources_templates},
	{"resources/read", LEGACY | MODERN, resources_read},
	{"subscriptions/listen", MODERN, subscriptions_listen},
};

static const struct method *method_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

/* ---- messages ---- */

static struct request *request_find(struct server *server, const json_t *id)
{
	for (struct request *request = server->requests; request; request = request->next)
		if (!request->cancelled && json_equal(request->id, id))
			return request;
	return NULL;
}

static void take_notification(struct server *server, const struct rpc *rpc)
{
	json_t *id = rpc_id(json_object_get(rpc->params, "requestId"));
	struct request *request = id ? request_find(server, id) : NULL;

	if (request && strcmp(rpc->method, "notifications/cancelled") == 0)
		request_cancel(request);
	json_decref(id);
}

static json_t *token_of(const struct rpc *rpc)
{
	return json_object_get(json_object_get(rpc->params, "_meta"), "progressToken");
}

static bool token_valid(const struct rpc *rpc)
{
	json_t *token = rpc_id(token_of(rpc));
	bool valid = token || !token_of(rpc) || json_is_null(token_of(rpc));

	json_decref(token);
	return valid;
}

/* What is wrong with a request before it is known what it is: 0, or the code of an error. */
static int request_check(struct server *server, const struct rpc *rpc, const struct method *method,
			 const char **messagep, json_t **datap)
{
	bool stateless = versions_modern(rpc->params);
	int code = stateless ? versions_check(rpc->params, messagep, datap) : 0;

	if (code)
		return code;
	if (!method || (stateless && !(method->eras & MODERN))) {
		*messagep = "there is no such method";
		return RPC_NO_METHOD;
	}
	if (!stateless && !(method->eras & LEGACY)) {
		*messagep = "this method wants the protocol version in _meta";
		return RPC_INVALID_PARAMS;
	}
	if (!token_valid(rpc)) {
		*messagep = "progressToken must be a string or an integer";
		return RPC_INVALID_PARAMS;
	}
	if (request_find(server, rpc->id)) {
		*messagep = "there is a request of that id without an answer";
		return RPC_INVALID_REQUEST;
	}
	if (server->n_requests >= REQUESTS_MAX) {
		*messagep = "there are too many requests without an answer";
		return RPC_INTERNAL;
	}
	return 0;
}

static void take_request(struct server *server, const struct rpc *rpc)
{
	const struct method *method = method_find(rpc->method);
	struct request *request;
	const char *message;
	json_t *data = NULL;
	int code;

	code = request_check(server, rpc, method, &message, &data);
	if (code) {
		server_send(server, rpc_error(rpc->id, code, message, data));
		return;
	}
	request = request_new(server, rpc->id);
	if (!request) {
		server->error = -ENOMEM;
		return;
	}
	request->modern = versions_modern(rpc->params);
	request->token = rpc_id(token_of(rpc));
	request->arguments = json_incref(rpc->params);
	method->run(request);
}

static bool is_blank(struct lair_text line)
{
	for (size_t i = 0; i < line.size; i++)
		if (!strchr(" \t\r", line.data[i]) || !line.data[i])
			return false;
	return true;
}

void server_line(struct server *server, struct lair_text line)
{
	struct rpc rpc;
	json_t *error;

	if (is_blank(line))
		return;
	error = rpc_read(&rpc, line);
	if (error)
		server_send(server, error);
	else if (rpc.kind == RPC_REQUEST)
		take_request(server, &rpc);
	else if (rpc.kind == RPC_NOTIFICATION)
		take_notification(server, &rpc);
	/* We ask nothing, so a response answers nothing. */
	rpc_deinit(&rpc);
}

/* ---- the loop ---- */

static bool input_wanted(const struct server *server)
{
	return !server->ending_since && outbox_waiting(&server->outbox) < OUTBOX_FULL;
}

/* Nobody asks for more: subscriptions are over, and the rest has a while. */
static void input_ended(struct server *server)
{
	struct request *request, *next;

	server->ending_since = server_now();
	for (request = server->requests; request; request = next) {
		next = request->next;
		if (!request->call)
			request_reply(request, json_pack("{s:{s:O}}", "_meta",
							 "io.modelcontextprotocol/subscriptionId", request->id));
	}
}

static void input_lines(struct server *server)
{
	struct lair_text line;
	int r;

	while (!server->error && input_wanted(server)) {
		r = lines_next(&server->input, &line);
		if (r == LINES_E_EMPTY)
			return;
		if (r == LINES_E_EOF)
			input_ended(server);
		else if (r == LINES_E_TOO_LONG)
			server_send(server, rpc_error(NULL, RPC_INVALID_REQUEST, "this line is too long", NULL));
		else
			server_line(server, line);
	}
}

static void cells_interrupt(struct server *server)
{
	struct request *request, *next;

	for (request = server->requests; request; request = next) {
		next = request->next;
		if (!request->cancelled)
			request_cancel(request);
	}
}

/* Nobody reads: that the client has gone is no trouble, and nobody waits for anything. */
static void output_ended(struct server *server)
{
	outbox_deinit(&server->outbox);
	server->mute = server->interrupted = true;
	server->ending_since = server_now();
	cells_interrupt(server);
}

/* When something is to be done although nothing has come; 0: nothing is. */
static double next_due(const struct server *server)
{
	double due = 0;

	for (const struct request *request = server->requests; request; request = request->next)
		if (request->due && (!due || request->due < due))
			due = request->due;
	if (server->ending_since && (!due || server->ending_since + END_PATIENCE < due))
		due = server->ending_since + END_PATIENCE;
	return due;
}

static void run_due(struct server *server)
{
	struct request *request, *next;
	double now = server_now();

	for (request = server->requests; request; request = next) {
		next = request->next;
		if (request->due && request->due <= now)
			request->on_due(request);
	}
	if (!server->ending_since || now < server->ending_since + END_PATIENCE)
		return;
	if (server->interrupted) {
		server->given_up = true;
	} else {
		cells_interrupt(server);
		server->interrupted = true;
		server->ending_since = now;
	}
}

static int server_wait(const struct server *server, struct pollfd fds[static 3])
{
	double due = next_due(server);
	int timeout = due ? (int)fmin(fmax(0, ceil((due - server_now()) * 1e3)), 60e3) : -1;

	fds[0] = (struct pollfd){.fd = input_wanted(server) ? server->input.fd : -1, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = server->lair ? lair_fd(server->lair) : -1, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = outbox_waiting(&server->outbox) ? server->outbox.fd : -1, .events = POLLOUT};
	return poll(fds, 3, timeout) < 0 && errno != EINTR ? -errno : 0;
}

static void server_turn(struct server *server)
{
	struct pollfd fds[3];
	int r;

	r = server_wait(server, fds);
	if (!r && fds[0].revents) {
		r = lines_fill(&server->input);
		if (r && r != -ENOMEM) { /* what cannot be read has ended */
			server->input.eof = true;
			r = 0;
		}
	}
	/* That the daemon is gone each of its calls has said. */
	if (!r && fds[1].revents && lair_process(server->lair))
		server->lair = lair_free(server->lair);
	/* Also what has been read, but was too much for an outbox that was full. */
	if (!r)
		input_lines(server);
	if (!r)
		run_due(server);
	if (r)
		server->error = r;
	else if (outbox_flush(&server->outbox))
		output_ended(server);
}

static bool server_done(const struct server *server)
{
	return server->error || server->given_up ||
	       (server->ending_since && !server->requests && !outbox_waiting(&server->outbox));
}

int mcp_serve(const struct mcp_options *options, int in, int out)
{
	struct server server;
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	server_init(&server, options, in, out);
	while (!server_done(&server))
		server_turn(&server);
	r = server.error;
	server_deinit(&server);
	return r;
}
