/* lair mcp over stdin and stdout: lines come in, documents go out, and between them any number of requests
 * wait for the daemon. No session belongs to the process: it can be started twice or killed,
 * or its input closed, and only answers that nobody reads are lost. */
#include "base/lines.h"
#include "base/outbox.h"
#include "base/signals.h"
#include "base/text.h"
#include "engine.h"
#include "functions.h"

#include "proto/clock.h"

#include <stdio.h>

#define LINE_SIZE_MAX ((size_t)32 << 20)
/* While so much waits to be written, no more is read. */
#define OUTBOX_FULL ((size_t)16 << 20)
/* After the end of the input, pending answers have so many seconds. Then cells are interrupted, and have as many
 * again. */
#define END_PATIENCE 1.0

struct stdio {
	struct event_loop *loop;
	struct engine *engine;
	struct lines input;
	struct outbox outbox;
	int signals; /* owned */
	struct event_source on_input, on_output, on_signal;
	/* how it ends */
	struct timer patience; /* armed when the input has ended */
	bool ending;
	bool interrupted; /* since then, the cells that ran were interrupted */
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
	return !stdio->ending && outbox_waiting(&stdio->outbox) < OUTBOX_FULL;
}

static void on_patience(struct timer *timer)
{
	struct stdio *stdio = container_of(timer, struct stdio, patience);

	if (stdio->interrupted) {
		stdio->given_up = true;
		return;
	}
	engine_interrupt(stdio->engine);
	stdio->interrupted = true;
	(void)timer_set_in(stdio->loop, timer, END_PATIENCE, on_patience);
}

static void end_begin(struct stdio *stdio)
{
	stdio->ending = true;
	stdio->error = timer_set_in(stdio->loop, &stdio->patience, END_PATIENCE, on_patience);
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
			end_begin(stdio);
			engine_end(stdio->engine);
		} else if (r == LINES_E_TOO_LONG) {
			engine_send(stdio->engine,
				    rpc_error(NULL, RPC_INVALID_REQUEST, "this line is too long", NULL));
		} else {
			engine_line(stdio->engine, line);
		}
	}
}

/* Nobody reads any more, or a signal tells us to end. That is not an error; answers are not needed any more. */
static void client_gone(struct stdio *stdio)
{
	outbox_deinit(&stdio->outbox);
	event_remove(stdio->loop, &stdio->on_signal);
	stdio->engine->mute = stdio->interrupted = true;
	end_begin(stdio);
	engine_interrupt(stdio->engine);
}

static void on_input(struct event_source *source, uint32_t events)
{
	struct stdio *stdio = container_of(source, struct stdio, on_input);
	int r = lines_fill(&stdio->input);

	if (r == -ENOMEM)
		stdio->error = r;
	else if (r) /* an input that cannot be read has ended */
		stdio->input.eof = true;
}

static void on_output(struct event_source *source, uint32_t events)
{
	/* Each round writes. */
}

static void on_signal(struct event_source *source, uint32_t events)
{
	client_gone(container_of(source, struct stdio, on_signal));
}

static void stdio_round(struct stdio *stdio)
{
	int r;

	/* Also lines that were read while the outbox was full. */
	input_lines(stdio);
	if (!stdio->error && outbox_flush(&stdio->outbox))
		client_gone(stdio);
	stdio->engine->waiting = outbox_waiting(&stdio->outbox);
	r = event_set(stdio->loop, &stdio->on_input, stdio->input.fd, input_wanted(stdio) ? EPOLLIN : 0, on_input);
	if (!r)
		r = event_set(stdio->loop, &stdio->on_output, stdio->outbox.fd,
			      outbox_waiting(&stdio->outbox) ? EPOLLOUT : 0, on_output);
	if (!r)
		r = event_round(stdio->loop, -1);
	if (r)
		stdio->error = r;
}

static bool stdio_done(const struct stdio *stdio)
{
	return stdio->error || stdio->engine->error || stdio->given_up ||
	       (stdio->ending && !stdio->engine->requests && !outbox_waiting(&stdio->outbox));
}

static void stdio_close(struct stdio *stdio)
{
	event_remove(stdio->loop, &stdio->on_input);
	event_remove(stdio->loop, &stdio->on_output);
	event_remove(stdio->loop, &stdio->on_signal);
	timer_clear(stdio->loop, &stdio->patience);
	engine_free(stdio->engine);
	fd_close(stdio->signals);
	lines_deinit(&stdio->input);
	outbox_deinit(&stdio->outbox);
}

int mcp_serve(const struct mcp_options *options, int in, int out)
{
	struct stdio stdio = {.loop = options->loop,
			      .on_input = EVENT_SOURCE_NONE,
			      .on_output = EVENT_SOURCE_NONE,
			      .on_signal = EVENT_SOURCE_NONE};
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
		r = stdio.signals < 0 ? stdio.signals
				      : event_add(stdio.loop, &stdio.on_signal, stdio.signals, EPOLLIN, on_signal);
	if (!r)
		stdio.engine = engine_new(options, NULL, session, on_say, &stdio);
	if (!r && !stdio.engine)
		r = -ENOMEM;
	while (!r && !stdio_done(&stdio))
		stdio_round(&stdio);
	if (!r)
		r = stdio.error ? stdio.error : stdio.engine->error;
	stdio_close(&stdio);
	return r;
}
