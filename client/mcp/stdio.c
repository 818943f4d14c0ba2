/* lair mcp over stdin and stdout: one thread, one blocking call. Lines come in, documents go out, and in between
 * any number of requests wait for the daemon. No session belongs to the process: it can be started twice or killed,
 * or its input closed, and only answers that nobody reads are lost. */
#include "base/lines.h"
#include "base/outbox.h"
#include "base/signals.h"
#include "base/text.h"
#include "engine.h"
#include "functions.h"

#include "servers/servers.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>

#define LINE_SIZE_MAX ((size_t)32 << 20)
/* While so much waits to be written, no more is read. */
#define OUTBOX_FULL ((size_t)16 << 20)
/* After the end of the input, pending answers have so many seconds. Then cells are interrupted, and have as many
 * again. */
#define END_PATIENCE 1.0

struct stdio {
	struct engine *engine;
	struct lines input;
	struct outbox outbox;
	int signals; /* owned; -1: signals do what they usually do */
	/* how it ends */
	double ending_since; /* when the input ended; 0: it has not */
	bool interrupted;    /* since then, the cells that ran were interrupted */
	bool given_up;
	int error;
};

static void on_say(void *userdata, json_t *document, const json_t *about)
{
	struct stdio *stdio = userdata;

	(void)about;
	if (outbox_add(&stdio->outbox, document))
		stdio->error = -ENOMEM;
	stdio->engine->waiting = outbox_waiting(&stdio->outbox);
}

static bool input_wanted(const struct stdio *stdio)
{
	return !stdio->ending_since && outbox_waiting(&stdio->outbox) < OUTBOX_FULL;
}

static void input_lines(struct stdio *stdio)
{
	struct lair_text line;
	int r;

	while (!stdio->engine->error && !stdio->error && input_wanted(stdio)) {
		r = lines_next(&stdio->input, &line);
		if (r == LINES_E_EMPTY)
			return;
		if (r == LINES_E_EOF) {
			stdio->ending_since = clock_seconds();
			engine_end(stdio->engine);
		} else if (r == LINES_E_TOO_LONG) {
			engine_send(stdio->engine,
				    rpc_error(NULL, RPC_INVALID_REQUEST, "this line is too long", NULL));
		} else {
			engine_line(stdio->engine, line);
		}
	}
}

/* Nobody reads any more, or a signal tells us to end. That is no error, but nobody waits for answers any more. */
static void client_gone(struct stdio *stdio)
{
	outbox_deinit(&stdio->outbox);
	stdio->engine->mute = stdio->interrupted = true;
	stdio->ending_since = clock_seconds();
	engine_interrupt(stdio->engine);
}

static double sooner(double a, double b)
{
	return !a || (b && b < a) ? b : a;
}

/* When something must be done although nothing has come; 0: never. */
static double next_due(const struct stdio *stdio)
{
	double due = engine_due(stdio->engine);

	if (stdio->engine->options.servers)
		due = sooner(due, servers_due(stdio->engine->options.servers));
	return sooner(due, stdio->ending_since ? stdio->ending_since + END_PATIENCE : 0);
}

static void run_due(struct stdio *stdio)
{
	double now = clock_seconds();

	engine_tick(stdio->engine);
	if (!stdio->ending_since || now < stdio->ending_since + END_PATIENCE)
		return;
	if (stdio->interrupted) {
		stdio->given_up = true;
	} else {
		engine_interrupt(stdio->engine);
		stdio->interrupted = true;
		stdio->ending_since = now;
	}
}

enum { FD_INPUT, FD_LAIR, FD_OUTPUT, FD_SIGNALS, FD_SERVERS, N_FDS };

static int stdio_wait(const struct stdio *stdio, struct pollfd fds[static N_FDS])
{
	double due = next_due(stdio);
	int timeout = due ? (int)fmin(fmax(0, ceil((due - clock_seconds()) * 1e3)), 60e3) : -1;

	fds[FD_INPUT] = (struct pollfd){.fd = input_wanted(stdio) ? stdio->input.fd : -1, .events = POLLIN};
	fds[FD_LAIR] =
		(struct pollfd){.fd = stdio->engine->lair ? lair_fd(stdio->engine->lair) : -1, .events = POLLIN};
	fds[FD_OUTPUT] =
		(struct pollfd){.fd = outbox_waiting(&stdio->outbox) ? stdio->outbox.fd : -1, .events = POLLOUT};
	fds[FD_SIGNALS] = (struct pollfd){.fd = stdio->engine->mute ? -1 : stdio->signals, .events = POLLIN};
	fds[FD_SERVERS] = (struct pollfd){
		.fd = stdio->engine->options.servers ? servers_fd(stdio->engine->options.servers) : -1,
		.events = POLLIN};
	return poll(fds, N_FDS, timeout) < 0 && errno != EINTR ? -errno : 0;
}

static void stdio_turn(struct stdio *stdio)
{
	struct pollfd fds[N_FDS];
	int r;

	r = stdio_wait(stdio, fds);
	if (!r && fds[FD_INPUT].revents) {
		r = lines_fill(&stdio->input);
		if (r && r != -ENOMEM) { /* an input that cannot be read has ended */
			stdio->input.eof = true;
			r = 0;
		}
	}
	/* If the daemon is gone, each of its calls has said so. */
	if (!r && fds[FD_LAIR].revents && lair_process(stdio->engine->lair) == LAIR_E_LOST)
		stdio->engine->lair = lair_free(stdio->engine->lair);
	/* Also lines that were read while the outbox was full. */
	if (!r)
		input_lines(stdio);
	if (!r)
		r = functions_process(stdio->engine);
	if (!r)
		run_due(stdio);
	if (r)
		stdio->error = r;
	else if (fds[FD_SIGNALS].revents || outbox_flush(&stdio->outbox))
		client_gone(stdio);
	stdio->engine->waiting = outbox_waiting(&stdio->outbox);
}

static bool stdio_done(const struct stdio *stdio)
{
	return stdio->error || stdio->engine->error || stdio->given_up ||
	       (stdio->ending_since && !stdio->engine->requests && !outbox_waiting(&stdio->outbox));
}

int mcp_serve(const struct mcp_options *options, int in, int out)
{
	struct stdio stdio = {.signals = -1};
	char session[24] = "mcp-";
	int r;

	lines_init(&stdio.input, in);
	stdio.input.size_max = LINE_SIZE_MAX;
	outbox_init(&stdio.outbox, out);
	/* Two servers serve two conversations, which know nothing of each other, and a variable of one must not
	 * appear in the other. So each process has a session of its own, with a name that no other process will
	 * have. */
	r = text_random(session + strlen(session), 8);
	stdio.signals = signals_take(); /* with which some clients end their servers */
	if (!r)
		r = MIN(stdio.signals, 0);
	if (!r)
		stdio.engine = engine_new(options, NULL, session, on_say, &stdio);
	if (!r && !stdio.engine)
		r = -ENOMEM;
	while (!r && !stdio_done(&stdio))
		stdio_turn(&stdio);
	if (!r)
		r = stdio.error ? stdio.error : stdio.engine->error;
	engine_free(stdio.engine);
	fd_close(stdio.signals);
	lines_deinit(&stdio.input);
	outbox_deinit(&stdio.outbox);
	return r;
}
