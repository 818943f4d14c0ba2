/* The tools that run code. With a progress token its output also goes out as it comes, gathered for a moment so
 * that code that prints much does not flood the client; and when it is silent, the client hears now and then that
 * it still runs, since many give up on a request they hear nothing of. */
#include "tools.h"

#include "json.h"
#include "result.h"

#include <math.h>
#include <stdio.h>

#define GATHER 0.1
#define SILENCE 2.0
#define PENDING_SIZE ((size_t)4096)
/* A client that does not read as fast gets less to read. */
#define PROGRESS_FULL ((size_t)1 << 20)

struct run_work {
	struct seen seen;
	double started, sent, progress; /* when it began and when something was sent last; what was said last */
	char pending[PENDING_SIZE];	/* output that has not been sent, or the end of it */
	size_t n_pending;
};

/* ---- progress ---- */

static void progress_send(struct request *request, json_t *message)
{
	struct run_work *run = request->work;

	run->sent = clock_seconds();
	run->n_pending = 0;
	request->due = run->sent + SILENCE;
	if (outbox_waiting(&request->server->outbox) > PROGRESS_FULL) {
		json_decref(message);
		return;
	}
	/* It has to grow each time, whatever the clock does. */
	run->progress = fmax(run->progress + 1e-3, round((run->sent - run->started) * 1e3) / 1e3);
	server_send(request->server, rpc_notification("notifications/progress",
						      json_pack("{s:O, s:f, s:o}", "progressToken", request->token,
								"progress", run->progress, "message", message)));
}

static void progress_flush(struct request *request)
{
	struct run_work *run = request->work;

	if (run->n_pending > 0)
		progress_send(request, json_text((struct lair_text){.data = run->pending, .size = run->n_pending}));
}

static void on_due(struct request *request)
{
	struct run_work *run = request->work;
	char message[64];

	progress_flush(request);
	if (request->due > clock_seconds())
		return;
	snprintf(message, sizeof(message), "running for %.0f s", clock_seconds() - run->started);
	progress_send(request, json_string(message));
}

static void pending_add(struct run_work *run, struct lair_text data)
{
	size_t size = MIN(data.size, PENDING_SIZE), keep = MIN(run->n_pending, PENDING_SIZE - size);

	memmove(run->pending, run->pending + run->n_pending - keep, keep);
	memcpy(run->pending + keep, data.data + data.size - size, size);
	run->n_pending = keep + size;
}

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	struct request *request = userdata;
	struct run_work *run = request->work;

	(void)call;
	excerpt_add(stream == LAIR_STDOUT ? &run->seen.out : &run->seen.err, data);
	if (request->cancelled)
		return;
	pending_add(run, data);
	if (clock_seconds() >= run->sent + GATHER)
		progress_flush(request);
	else
		request->due = run->sent + GATHER;
}

static void on_display(struct lair_call *call, const struct lair_display *display, void *userdata)
{
	struct request *request = userdata;
	struct run_work *run = request->work;

	(void)call;
	shown_add(&run->seen.shown, display);
}

/* ---- the cell ---- */

static void run_free(void *work)
{
	struct run_work *run = work;

	shown_deinit(&run->seen.shown);
	free(run);
}

static void on_result(struct request *request, struct lair_call *call)
{
	const struct lair_result *cell = lair_result(call);
	struct run_work *run = request->work;
	struct lair_display display;
	size_t cursor = 0;

	progress_flush(request);
	excerpt_add(&run->seen.out, cell->out);
	excerpt_add(&run->seen.err, cell->err);
	while (lair_next_display(cell->displays, &cursor, &display))
		shown_add(&run->seen.shown, &display);
	shown_add_value(&run->seen.shown, cell->data);
	request_reply(request, result_cell(request, cell, &run->seen));
}

static bool run_begin(struct request *request)
{
	struct run_work *run = calloc(1, sizeof(*run));

	if (!run || shown_init(&run->seen.shown)) {
		free(run);
		request_fail(request, -ENOMEM, "out of memory");
		return false;
	}
	request->work = run;
	request->work_free = run_free;
	run->started = clock_seconds();
	if (request->token) {
		request->due = run->started + SILENCE;
		request->on_due = on_due;
	}
	return true;
}

static void run(struct request *request, const char *session)
{
	const struct mcp_options *options = request->server->options;
	json_t *code = json_object_get(request->arguments, "code");
	double timeout = argument_number(request, "timeout_sec");
	struct lair_exec exec = {
		.session = session,
		.profile = options->profile,
		.code = {json_string_value(code), json_string_length(code)},
		.timeout = timeout > 0 ? timeout : options->timeout,
		.directory = argument_text(request, "cwd_rel"),
		.on_output = request->token ? on_output : NULL,
		.on_display = request->token ? on_display : NULL,
		.userdata = request,
	};
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;

	if (!lair || !run_begin(request))
		return;
	request->runs = true;
	request_wait(request, lair_exec(lair, &call, &exec), &call, on_result);
}

void run_once(struct request *request)
{
	run(request, NULL);
}

void run_in_session(struct request *request)
{
	run(request, argument_session(request));
}
