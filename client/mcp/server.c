/* The server: one thread, one blocking call. Lines come in, documents go out, and in between any number of
 * requests wait for the daemon. No session belongs to the process: it can be started twice or killed, or its
 * input closed, and only answers that nobody reads are lost. */
#include "functions.h"
#include "offered.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/signalfd.h>

#define LINE_SIZE_MAX ((size_t)32 << 20)
/* While so much waits to be written, no more is read. */
#define OUTBOX_FULL ((size_t)16 << 20)
/* After the end of the input, pending answers have so many seconds. Then cells are interrupted, and have as many
 * again. */
#define END_PATIENCE 1.0

void server_init(struct server *server, const struct mcp_options *options, int in, int out)
{
	*server = (struct server){.options = options, .signals = -1};
	server->births = json_object();
	server->asked = json_object();
	lines_init(&server->input, in);
	server->input.size_max = LINE_SIZE_MAX;
	outbox_init(&server->outbox, out);
	server->error = offered_new(&server->offered, options->servers);
}

void server_deinit(struct server *server)
{
	while (server->requests)
		request_drop(server->requests);
	if (!server->lent)
		server->lair = lair_free(server->lair);
	server->offered = offered_free(server->offered);
	json_decref(server->births);
	json_decref(server->asked);
	server->signals = fd_close(server->signals);
	lines_deinit(&server->input);
	outbox_deinit(&server->outbox);
}

/* @about: the id of the request that it belongs to; NULL: none. */
static void send_about(struct server *server, json_t *document, const json_t *about)
{
	if (server->mute)
		json_decref(document);
	else if (server->send)
		server->send(server, document, about);
	else if (outbox_add(&server->outbox, document))
		server->error = -ENOMEM;
}

void server_send(struct server *server, json_t *document)
{
	send_about(server, document, json_object_get(document, "id"));
}

void request_tell(const struct request *request, json_t *document)
{
	send_about(request->server, document, request->id);
}

int server_connect(struct server *server, struct lair **lairp, bool start, const char **sentencep)
{
	struct lair_options options = server->options->lair;
	int r = 0;

	if (server->lent) {
		*lairp = server->lair;
		*sentencep = "laird does not answer";
		return lair_fd(server->lair) < 0 ? LAIR_E_NO_DAEMON : 0;
	}
	/* If a handle must not start a daemon, it is of no use once its daemon has gone. */
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

/* ---- the loop ---- */

static bool input_wanted(const struct server *server)
{
	return !server->ending_since && outbox_waiting(&server->outbox) < OUTBOX_FULL;
}

/* No more requests will come: subscriptions end, and the other requests have a while. */
static void input_ended(struct server *server)
{
	struct request *request, *next;

	server->ending_since = clock_seconds();
	for (request = server->requests; request; request = next) {
		next = request->next;
		if (request->answered || request->resume)
			request_drop(request);
		else if (!request->call)
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
		if (!request->cancelled && !request->answered)
			request_cancel(request);
	}
}

/* Nobody reads any more, or a signal tells us to end. That is no error, but nobody waits for answers any more. */
static void client_gone(struct server *server)
{
	outbox_deinit(&server->outbox);
	server->mute = server->interrupted = true;
	server->ending_since = clock_seconds();
	cells_interrupt(server);
}

static double sooner(double a, double b)
{
	return !a || (b && b < a) ? b : a;
}

/* When something must be done although nothing has come; 0: never. */
static double next_due(const struct server *server)
{
	double due = 0;

	for (const struct request *request = server->requests; request; request = request->next)
		if (request->due && (!due || request->due < due))
			due = request->due;
	if (server->options->servers)
		due = sooner(due, servers_due(server->options->servers));
	if (server->ending_since && (!due || server->ending_since + END_PATIENCE < due))
		due = server->ending_since + END_PATIENCE;
	return due;
}

static void run_due(struct server *server)
{
	struct request *request, *next;
	double now = clock_seconds();

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

enum { FD_INPUT, FD_LAIR, FD_OUTPUT, FD_SIGNALS, FD_SERVERS, N_FDS };

static int server_wait(const struct server *server, struct pollfd fds[static N_FDS])
{
	double due = next_due(server);
	int timeout = due ? (int)fmin(fmax(0, ceil((due - clock_seconds()) * 1e3)), 60e3) : -1;

	fds[FD_INPUT] = (struct pollfd){.fd = input_wanted(server) ? server->input.fd : -1, .events = POLLIN};
	fds[FD_LAIR] = (struct pollfd){.fd = server->lair ? lair_fd(server->lair) : -1, .events = POLLIN};
	fds[FD_OUTPUT] =
		(struct pollfd){.fd = outbox_waiting(&server->outbox) ? server->outbox.fd : -1, .events = POLLOUT};
	fds[FD_SIGNALS] = (struct pollfd){.fd = server->mute ? -1 : server->signals, .events = POLLIN};
	fds[FD_SERVERS] = (struct pollfd){
		.fd = server->options->servers ? servers_fd(server->options->servers) : -1, .events = POLLIN};
	return poll(fds, N_FDS, timeout) < 0 && errno != EINTR ? -errno : 0;
}

static void server_turn(struct server *server)
{
	struct pollfd fds[N_FDS];
	int r;

	r = server_wait(server, fds);
	if (!r && fds[FD_INPUT].revents) {
		r = lines_fill(&server->input);
		if (r && r != -ENOMEM) { /* an input that cannot be read has ended */
			server->input.eof = true;
			r = 0;
		}
	}
	/* If the daemon is gone, each of its calls has said so. */
	if (!r && fds[FD_LAIR].revents && lair_process(server->lair) == LAIR_E_LOST)
		server->lair = lair_free(server->lair);
	/* Also lines that were read while the outbox was full. */
	if (!r)
		input_lines(server);
	if (!r)
		r = functions_process(server);
	if (!r)
		run_due(server);
	if (r)
		server->error = r;
	else if (fds[FD_SIGNALS].revents || outbox_flush(&server->outbox))
		client_gone(server);
}

static bool server_done(const struct server *server)
{
	return server->error || server->given_up ||
	       (server->ending_since && !server->requests && !outbox_waiting(&server->outbox));
}

/* Some clients end their servers with a signal. Cells must not be left running then. */
static int signals_take(struct server *server)
{
	sigset_t set;

	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	server->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return server->signals < 0 ? -errno : 0;
}

/* Two servers serve two conversations, which know nothing of each other, and a variable of one must not appear in
 * the other. So each process has a session of its own, with a name that no other process will have. */
static int session_name(struct server *server)
{
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	snprintf(server->session, sizeof(server->session), "mcp-%08" PRIx32, random);
	return 0;
}

int mcp_serve(const struct mcp_options *options, int in, int out)
{
	struct server server;
	int r;

	server_init(&server, options, in, out);
	if (!server.error)
		server.error = session_name(&server);
	if (!server.error)
		server.error = signals_take(&server);
	while (!server_done(&server))
		server_turn(&server);
	r = server.error;
	server_deinit(&server);
	return r;
}
