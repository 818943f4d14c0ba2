/* The tools that run code. With a progress token, output is also sent as it comes, collected for a moment so
 * that code that prints much does not flood the client. If the code is silent, the client hears now and then
 * that it still runs, since many clients give up otherwise. Before a client gives up, the call is answered with
 * a handle: the cell's key, how far its output has come, and its session. The server remembers nothing of it, so
 * the handle works in another process, and the same handle gets the same answer. */
#include "tools.h"

#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "functions.h"
#include "lib/options.h"
#include "tool_result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/random.h>

#define GATHER 0.1
#define SILENCE 2.0
#define PENDING_SIZE ((size_t)4096)
/* If so much waits for the client to read, it gets no more progress. */
#define PROGRESS_FULL ((size_t)1 << 20)

/* If calls of the code ask already, they may be answered at this moment. */
#define ASKING_PATIENCE 1.0

#define KEY_SIZE 17
#define ONCE_SIZE 160
/* How much of a long output is sent at once. */
#define PAGE_SIZE ((size_t)20000)
/* A point beyond the end of every output. */
#define NOTHING INT64_MAX

struct run_work {
	struct seen seen;
	const struct request *request;
	char key[KEY_SIZE];
	char once[ONCE_SIZE];	      /* of a one-shot that has a name: its session; else "" */
	double heard_due, answer_due; /* when the client gets a sign of life, if any; and an answer */
	double patient_until;	      /* when it gets one in any case */
	/* if only a piece of the output is wanted: the piece */
	bool paging, page_full;
	enum lair_stream page_of;
	uint64_t page_at; /* where the piece begins */
	size_t page_size;
	char page[PAGE_SIZE];
	double started, sent, progress; /* when the cell began; when progress was last sent; its last number */
	char pending[PENDING_SIZE];	/* output that was not sent yet, or only the end of it */
	size_t n_pending;
	char doing[200]; /* the work for the cell, as last reported */
};

static void due_set(struct request *request)
{
	const struct run_work *run = request->work;
	bool heard_first = run->heard_due > 0 && run->heard_due < run->answer_due;

	request_due(request, heard_first ? run->heard_due : run->answer_due);
}

/* ---- progress ---- */

static void progress_send(struct request *request, json_t *message)
{
	struct run_work *run = request->work;

	run->sent = clock_seconds();
	run->n_pending = 0;
	run->heard_due = run->sent + SILENCE;
	due_set(request);
	if (request->engine->waiting > PROGRESS_FULL) {
		json_decref(message);
		return;
	}
	/* The number has to grow each time, even if the clock does not. */
	run->progress = fmax(run->progress + 1e-3, round((run->sent - run->started) * 1e3) / 1e3);
	request_tell(request, rpc_notification("notifications/progress",
					       json_pack("{s:O, s:f, s:o}", "progressToken", request->token,
							 "progress", run->progress, "message", message)));
}

static void progress_flush(struct request *request)
{
	struct run_work *run = request->work;

	if (run->n_pending > 0)
		progress_send(request, json_text((struct lair_text){.data = run->pending, .size = run->n_pending}));
}

static void hear(struct request *request)
{
	struct run_work *run = request->work;
	char message[64];

	progress_flush(request);
	if (run->heard_due > clock_seconds()) {
		due_set(request);
		return;
	}
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

/* The piece ends when it is full, or at a gap in the output that is kept. on_due then answers, because a callback
 * cannot free a call. */
static void page_add(struct request *request, uint64_t at, struct lair_text data)
{
	struct run_work *run = request->work;
	size_t n = MIN(data.size, PAGE_SIZE - run->page_size);

	if (run->page_size == 0)
		run->page_at = at;
	if (at != run->page_at + run->page_size)
		n = 0;
	memcpy(run->page + run->page_size, data.data, n);
	run->page_size += n;
	if (n == data.size || run->page_full)
		return;
	run->page_full = true;
	run->answer_due = clock_seconds();
	due_set(request);
}

/* The daemon does not keep all output. */
static void seen_add(struct seen *seen, enum lair_stream stream, uint64_t at, struct lair_text data)
{
	struct excerpt *excerpt = stream == LAIR_STDOUT ? &seen->out : &seen->err;
	uint64_t *end = stream == LAIR_STDOUT ? &seen->printed.out : &seen->printed.err;

	if (at > *end)
		excerpt_skip(excerpt, at - *end);
	excerpt_add(excerpt, data);
	*end = at + data.size;
}

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	struct request *request = userdata;
	struct run_work *run = request->work;
	struct lair_point end = lair_point(call);
	uint64_t at = (stream == LAIR_STDOUT ? end.out : end.err) - data.size;

	if (request->answered)
		return;
	if (run->paging) {
		if (stream == run->page_of)
			page_add(request, at, data);
		return;
	}
	seen_add(&run->seen, stream, at, data);
	if (request->cancelled || request->answered || !request->token)
		return;
	pending_add(run, data);
	if (clock_seconds() >= run->sent + GATHER) {
		progress_flush(request);
	} else {
		run->heard_due = run->sent + GATHER;
		due_set(request);
	}
}

/* The work that is done for the cell, whenever that changes: its packages come. */
static void on_alive(struct lair_call *call, const struct lair_alive *alive, void *userdata)
{
	struct request *request = userdata;
	struct run_work *run = request->work;
	char doing[sizeof(run->doing)];

	(void)call;
	if (request->cancelled || request->answered || !request->token || run->paging || !alive->doing.data)
		return;
	text_tamed(doing, sizeof(doing), alive->doing);
	if (strcmp(doing, run->doing) == 0)
		return;
	memcpy(run->doing, doing, sizeof(doing));
	progress_flush(request);
	progress_send(request, json_text(lair_text(doing)));
}

static void on_display(struct lair_call *call, const struct lair_display *display, void *userdata)
{
	struct request *request = userdata;
	struct run_work *run = request->work;

	(void)call;
	if (!request->answered)
		shown_add(&run->seen.shown, display);
}

/* ---- answers ---- */

/* The handle for the rest of a result. New. */
static json_t *handle_of(const struct request *request, const struct lair_call *call)
{
	const struct run_work *run = request->work;
	const char *session = *run->once ? run->once : argument_text(request, "session_id");
	struct lair_point at = lair_point(call);
	_cleanup_(freep) char *text = NULL;

	if (!session && tool_runs_in_session(request->tool))
		session = argument_session(request);
	if (asprintf(&text, "%s-%" PRIu64 "-%" PRIu64 "-%" PRIu64 "%s%s", run->key, at.out, at.err, at.displays,
		     session ? "@" : "", session ? session : "") < 0)
		text = NULL;
	return json_text(lair_text(text ? text : ""));
}

/* @more: there may be another page. */
static void page_reply(struct request *request, bool more)
{
	struct run_work *run = request->work;
	size_t cut = more ? text_cut_end(run->page, run->page_size) : 0;
	json_t *structured = json_pack("{s:b, s:I}", "ok", 1, "from_byte", (json_int_t)run->page_at);
	uint64_t next;

	run->page_size -= cut;
	if (run->page_size > 0)
		json_object_set_new(structured, run->page_of == LAIR_STDOUT ? "stdout" : "stderr",
				    json_text((struct lair_text){run->page, run->page_size}));
	next = run->page_at + run->page_size;
	if (more)
		json_object_set_new(structured, "next_byte", json_integer((json_int_t)next));
	request_reply(request, result_new(structured));
}

/* The client gets an answer now; the code runs on. */
static void unfinished_reply(struct request *request)
{
	struct run_work *run = request->work;
	json_t *handle = handle_of(request, request->call), *result = functions_input_required(request, handle);

	if (!result)
		result = result_running(request, &run->seen, json_incref(handle), functions_asking(request),
					run->key, clock_seconds() - run->started);
	json_decref(handle);
	request_answer(request, result);
	if (!functions_keep(request))
		request_drop(request);
}

/* A call of the code waits for a person. */
static void hurry(struct request *request, double due)
{
	struct run_work *run = request->work;

	if (run->paging)
		return;
	run->answer_due = fmin(run->answer_due, due);
	due_set(request);
}

static void on_due(struct request *request)
{
	struct run_work *run = request->work;

	if (clock_seconds() < run->answer_due) {
		hear(request);
	} else if (clock_seconds() < run->patient_until && !run->page_full && !functions_asking(request)) {
		/* The call that asked has its answer meanwhile. */
		run->answer_due = run->patient_until;
		due_set(request);
	} else if (run->paging)
		page_reply(request, true);
	else
		unfinished_reply(request);
}

/* ---- the cell ---- */

/* A one-shot that has a name ends when its cell has, or nobody wants it; not while it only takes long. */
static void once_end(const struct run_work *run)
{
	const struct request *request = run->request;
	const struct mcp_once *once = request->engine->options.once;

	if (*run->once && (!request->call || request->cancelled))
		once->end(once->userdata, run->once);
}

static void run_free(void *work)
{
	struct run_work *run = work;

	once_end(run);
	shown_deinit(&run->seen.shown);
	json_decref(run->seen.handle);
	free(run);
}

/* The result as that of a one-shot without a name. */
static void once_tell(struct lair_result *cell)
{
	cell->session.data = NULL;
	cell->state = lair_text(fates[FATE_ENDED].name);
	cell->back = (struct lair_back){.more = 0};
	cell->effects = (struct lair_effects){.more = 0};
}

static void on_result(struct request *request, struct lair_call *call)
{
	struct run_work *run = request->work;
	struct lair_result cell = *lair_result(call);
	struct lair_display display;
	size_t cursor = 0;

	if (run->paging) {
		page_reply(request, run->page_full);
		return;
	}
	if (*run->once)
		once_tell(&cell);
	progress_flush(request);
	run->seen.handle = handle_of(request, call);
	excerpt_add(&run->seen.out, cell.out);
	excerpt_add(&run->seen.err, cell.err);
	while (lair_next_display(cell.displays, &cursor, &display))
		shown_add(&run->seen.shown, &display);
	shown_add_value(&run->seen.shown, cell.data);
	request_reply(request, result_cell(request, &cell, &run->seen));
}

static bool run_begin(struct request *request)
{
	struct run_work *run = calloc(1, sizeof(*run));
	double patience = request->engine->options.patience;

	if (!run || shown_init(&run->seen.shown)) {
		free(run);
		request_fail(request, -ENOMEM, "out of memory");
		return false;
	}
	request->work = run;
	request->work_free = run_free;
	run->request = request;
	run->started = clock_seconds();
	run->answer_due = run->patient_until = run->started + (patience > 0 ? patience : MCP_PATIENCE);
	if (request->token)
		run->heard_due = run->started + SILENCE;
	request->on_due = on_due;
	due_set(request);
	return true;
}

/* A key that nobody else ever has. */
static int key_make(char key[static KEY_SIZE])
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	snprintf(key, KEY_SIZE, "%016" PRIx64, random);
	return 0;
}

/* Whether it has a name. */
static bool once_name(char name[static ONCE_SIZE], const struct mcp_options *options, const char *key)
{
	if (options->once)
		snprintf(name, ONCE_SIZE, "%s%s", options->once->prefix, key);
	return options->once;
}

static void run_code(struct request *request, const char *session, struct lair_text code)
{
	const struct mcp_options *options = &request->engine->options;
	struct lair_exec exec = {
		.session = session,
		.profile = options->profile,
		.code = code,
		.timeout = options->timeout,
		.on_output = on_output,
		.on_display = on_display,
		.on_alive = on_alive,
		.userdata = request,
	};
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;
	struct run_work *work;

	if (!lair || !run_begin(request))
		return;
	exec_options_read(&exec, request->arguments, DOOR_TOOLS);
	work = request->work;
	if (key_make(work->key)) {
		request_fail(request, -errno, "no random numbers");
		return;
	}
	exec.key = request->key = work->key;
	if (!session && once_name(work->once, options, work->key)) {
		exec.session = work->once;
		options->once->on_named(options->once->userdata, work->once);
	}
	work->seen.once = *work->once;
	request->hurry = hurry;
	functions_offer(request, &exec);
	request->runs = true;
	request_wait(request, lair_exec(lair, &call, &exec), &call, on_result);
}

static void run(struct request *request, const char *session)
{
	json_t *code = json_object_get(request->arguments, "code");

	run_code(request, session, (struct lair_text){json_string_value(code), json_string_length(code)});
}

/* As code does it: where packages have to be approved of, a model does not approve of its own. */
static void install_begin(struct request *request)
{
	_cleanup_(freep) char *code = NULL;
	const char *packages = argument_text(request, "packages");

	if (strpbrk(packages, "\r\n"))
		request_reply(request, result_refused(request, "bad_arguments", "packages must be one line"));
	else if (asprintf(&code, "%%pip install %s", packages) < 0)
		request_fail(request, -ENOMEM, "out of memory");
	else
		run_code(request, argument_session(request), lair_text(code));
}

static void once_begin(struct request *request)
{
	run(request, NULL);
}

static void in_session_begin(struct request *request)
{
	run(request, argument_session(request));
}

/* ---- the rest ---- */

static bool handle_parse(struct lair_attach *attach, char key[static KEY_SIZE], const char *handle)
{
	int n = 0;

	if (sscanf(handle, "%16[0-9a-f]-%" SCNu64 "-%" SCNu64 "-%" SCNu64 "%n", key, &attach->from.out,
		   &attach->from.err, &attach->from.displays, &n) != 4 ||
	    (handle[n] != '@' && handle[n] != '\0'))
		return false;
	attach->key = key;
	attach->session = handle[n] ? handle + n + 1 : NULL;
	return true;
}

/* If the request names a byte, only that stream is sent again, from that byte on. */
static void page_choose(struct request *request, struct lair_attach *attach)
{
	const json_t *from = json_object_get(request->arguments, "from_byte");
	struct run_work *run = request->work;

	run->paging = json_is_integer(from);
	if (!run->paging)
		return;
	run->page_at = (uint64_t)json_integer_value(from);
	run->page_of = json_is_true(json_object_get(request->arguments, "of_stderr")) ? LAIR_STDERR : LAIR_STDOUT;
	attach->from = (struct lair_point){.out = NOTHING, .err = NOTHING, .displays = NOTHING};
	*(run->page_of == LAIR_STDOUT ? &attach->from.out : &attach->from.err) = run->page_at;
}

/* To cancel this request only ends the wait: the code belongs to another request. */
static void rest_wait(struct request *request, struct lair_attach *attach)
{
	struct run_work *run = request->work;
	struct lair_call *call = NULL;

	memcpy(run->key, attach->key, KEY_SIZE);
	/* That it is a one-shot is seen by its name, which has its key. */
	if (!once_name(run->once, &request->engine->options, run->key) || !attach->session ||
	    strcmp(run->once, attach->session) != 0)
		*run->once = '\0';
	run->seen.once = *run->once;
	request->key = run->key;
	request->hurry = hurry;
	page_choose(request, attach);
	run->seen.printed = attach->from;
	functions_attach(request, attach);
	attach->on_output = on_output;
	attach->on_display = on_display;
	attach->on_alive = on_alive;
	attach->userdata = request;
	request_wait(request, lair_attach(request->engine->lair, &call, attach), &call, on_result);
}

static void rest_begin_at(struct request *request, const char *handle)
{
	struct lair_attach attach = {.session = NULL};
	char key[KEY_SIZE];

	if (!handle || !handle_parse(&attach, key, handle) ||
	    (attach.session && session_is_anothers(request->engine, attach.session))) {
		if (request->state)
			request_fail(request, LAIR_E_BAD_REQUEST, "");
		else
			request_reply(request, result_refused(request, "bad_arguments",
							      "handle must be one that a result has given"));
		return;
	}
	/* The answer looks for the session here. */
	if (attach.session)
		json_object_set_new(request->arguments, "session_id", json_text(lair_text(attach.session)));
	if (!request_lair(request) || !run_begin(request))
		return;
	functions_input_take(request, key, request->responses);
	rest_wait(request, &attach);
	if (functions_asking(request))
		hurry(request, clock_seconds() + ASKING_PATIENCE);
}

static void rest_begin(struct request *request)
{
	rest_begin_at(request, argument_text(request, "handle"));
}

void run_rest(struct request *request)
{
	functions_wait(request, rest_begin);
}

/* A request that was answered with a question comes again with the answer: its code has begun already. */
static void rest_of_state(struct request *request)
{
	rest_begin_at(request, json_text_value(request->state));
}

void run_once(struct request *request)
{
	functions_wait(request, request->state ? rest_of_state : once_begin);
}

void session_install(struct request *request)
{
	functions_wait(request, request->state ? rest_of_state : install_begin);
}

bool tool_runs_in_session(const struct tool *tool)
{
	return tool->run == run_in_session || tool->run == session_install;
}

void run_in_session(struct request *request)
{
	functions_wait(request, request->state ? rest_of_state : in_session_begin);
}
