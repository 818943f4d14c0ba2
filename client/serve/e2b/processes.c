/* Commands and watchers: each is a cell in a branch of its own, which ends with it. Streams listen to them, come
 * and go; a command goes on without any. */
#include "e2b.h"

#include "text.h"

#include <math.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define PROCESSES_MAX 256
/* Of one message of a session: what is to go into a process. */
#define INPUT_PIECE ((size_t)48 << 10)
#define ORDERS_MAX 1024
#define EVENTS_MAX 10000
#define REPORT "application/vnd.lair.e2b+json"
#define WATCH_LINE_MAX ((size_t)64 << 10)

struct stream {
	struct work work;
	struct exchange *exchange;
	struct process *process;
	struct stream *next; /* of the process */
	struct envelope envelope;
	double deadline, alive; /* on our clock; in seconds: 0: none */
	bool owns;		/* its deadline is the process's */
	bool found, over;	/* of StreamInput: its sandbox; its body has ended */
};

struct process {
	struct process *next;
	struct sandbox *sandbox;
	struct stream *streams;
	struct lair_call *call;
	char *session, *tag;
	json_t *config, *orders, *report, *events;
	json_t *early; /* what it wrote before its number was known: the SDKs want that first */
	uint64_t pid;
	double deadline; /* on our clock; it holds also if nobody listens any more */
	char *line;	 /* of a watcher: what has come of one */
	size_t line_size;
	bool pty, watches, watching, asks, ending;
};

/* ---- what streams are told ---- */

static void stream_tell(struct stream *stream, const json_t *message)
{
	if (!connect_send(stream->exchange, json_deep_copy(message)))
		stream_break(stream->exchange);
}

static void tell_all(struct process *process, json_t *message)
{
	for (struct stream *stream = process->streams; stream; stream = stream->next)
		stream_tell(stream, message);
	json_decref(message);
}

static json_t *event(const char *name, json_t *value)
{
	return json_pack("{s:{s:o}}", "event", name, value);
}

/* No stream listens any more: each ends with @code, or well. */
static void streams_end(struct process *process, const char *code, const char *message)
{
	for (struct stream *stream; (stream = process->streams);) {
		process->streams = stream->next;
		stream->process = NULL;
		exchange_alarm(stream->exchange, 0, NULL);
		if (code && strcmp(code, "lost") == 0)
			stream_break(stream->exchange);
		else
			connect_end(stream->exchange, code, message);
	}
}

static void stream_leave(struct stream *stream)
{
	struct stream **at = stream->process ? &stream->process->streams : NULL;

	while (at && *at && *at != stream)
		at = &(*at)->next;
	if (at && *at)
		*at = stream->next;
	stream->process = NULL;
}

/* ---- a process ---- */

static void process_free(struct process *process)
{
	(void)lair_call_free(process->call);
	json_decref(process->config);
	json_decref(process->orders);
	json_decref(process->report);
	json_decref(process->events);
	json_decref(process->early);
	free(process->session);
	free(process->tag);
	free(process->line);
	free(process);
}

static void process_unlink(struct process *process)
{
	struct process **at = &process->sandbox->processes;

	while (*at && *at != process)
		at = &(*at)->next;
	if (*at)
		*at = process->next;
}

void processes_drop(struct sandbox *sandbox)
{
	for (struct process *process; (process = sandbox->processes);) {
		sandbox->processes = process->next;
		streams_end(process, "lost", NULL);
		process_free(process);
	}
}

static void on_answered(struct lair_call *call, void *userdata)
{
	(void)userdata;
	(void)lair_call_free(call);
}

static void order_give(struct process *process)
{
	const char *line = json_string_value(json_array_get(process->orders, 0));
	struct lair_call *answer = NULL;

	if (!process->asks || (!line && !process->report))
		return;
	process->asks = false;
	/* The end of its input is the end of the cell. */
	if (!lair_input(process->sandbox->tenant->lair, &answer, process->call,
			line ? lair_text(line) : (struct lair_text){.data = NULL}))
		lair_on_done(answer, on_answered, NULL);
	json_array_remove(process->orders, 0);
}

static bool order(struct process *process, json_t *order)
{
	_cleanup_(freep) char *line = json_dumps(order, JSON_COMPACT);

	json_decref(order);
	if (!line || process->report || json_array_size(process->orders) >= ORDERS_MAX ||
	    json_array_append_new(process->orders, json_string(line)))
		return false;
	order_give(process);
	return true;
}

static void on_ask(struct lair_call *call, struct lair_text prompt, bool password, void *userdata)
{
	struct process *process = userdata;
	json_t *told = json_loadb(prompt.data, prompt.size, 0, NULL), *message;
	size_t i;

	(void)call;
	(void)password;
	if (!process->pid && json_is_integer(json_object_get(told, "pid"))) {
		process->pid = (uint64_t)json_integer_value(json_object_get(told, "pid")) & UINT32_MAX;
		tell_all(process, event("start", json_pack("{s:I}", "pid", (json_int_t)process->pid)));
		json_array_foreach(process->early, i, message)
		{
			tell_all(process, json_incref(message));
		}
		json_array_clear(process->early);
	}
	json_decref(told);
	process->asks = true;
	order_give(process);
}

static void on_display(struct lair_call *call, const struct lair_display *display, void *userdata)
{
	struct process *process = userdata;
	struct lair_data item;
	size_t cursor = 0;

	(void)call;
	while (!process->report && lair_next_data(display->data, &cursor, &item))
		if (text_is(item.type, REPORT))
			process->report = json_loadb(item.data.data, item.data.size, 0, NULL);
	order_give(process);
}

/* ---- what a watcher says ---- */

static void watch_said(struct process *process, const json_t *said)
{
	const char *failed = json_string_value(json_object_get(said, "failed"));
	json_t *told;

	if (failed) {
		process->report = json_deep_copy(said);
	} else if (json_object_get(said, "watching")) {
		process->watching = true;
		if (process->events && process->streams) {
			/* The one who asked for the watcher gets its name. */
			struct stream *asker = process->streams;

			stream_leave(asker);
			answer_json(asker->exchange, 200, json_pack("{s:s}", "watcherId", process->tag));
		}
		tell_all(process, json_pack("{s:{}}", "start"));
	} else {
		told = json_pack("{s:O, s:O}", "name", json_object_get(said, "name"), "type",
				 json_object_get(said, "type"));
		if (process->events && json_array_size(process->events) < EVENTS_MAX)
			json_array_append(process->events, told);
		tell_all(process, json_pack("{s:o}", "filesystem", told));
	}
}

static void on_lines(struct process *process, struct lair_text data)
{
	size_t wanted = process->line_size + data.size;
	char *grown = wanted < WATCH_LINE_MAX ? realloc(process->line, wanted + 1) : NULL, *end;

	if (!grown) {
		process->line_size = 0;
		return;
	}
	process->line = grown;
	memcpy(grown + process->line_size, data.data, data.size);
	process->line_size = wanted;
	while ((end = memchr(process->line, '\n', process->line_size))) {
		size_t n = (size_t)(end - process->line) + 1;
		json_t *said = json_loadb(process->line, n, 0, NULL);

		memmove(process->line, process->line + n, process->line_size - n);
		process->line_size -= n;
		if (json_is_object(said))
			watch_said(process, said);
		json_decref(said);
	}
}

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	struct process *process = userdata;
	_cleanup_(freep) char *packed = NULL;
	const char *name;
	json_t *message;

	(void)call;
	if (process->watches) {
		if (stream == LAIR_STDOUT)
			on_lines(process, data);
		return;
	}
	packed = process->streams ? text_base64(data) : NULL;
	if (!packed)
		return;
	name = process->pty ? "pty" : stream == LAIR_STDERR ? "stderr" : "stdout";
	message = event("data", json_pack("{s:s}", name, packed));
	if (process->pid)
		tell_all(process, message);
	else
		json_array_append_new(process->early, message);
}

/* ---- its end ---- */

static json_t *end_event(const struct process *process)
{
	json_int_t status = json_integer_value(json_object_get(process->report, "exit"));
	bool exited = json_is_true(json_object_get(process->report, "exited"));
	const char *said = json_string_value(json_object_get(process->report, "status"));
	json_t *end = json_pack("{s:I, s:b, s:s}", "exitCode", exited ? status : (json_int_t)-1, "exited",
				(int)exited, "status", said ? said : "");

	if (status != 0)
		json_object_set_new(end, "error", json_string(said ? said : ""));
	return event("end", end);
}

static json_t *lost_event(const struct lair_result *result)
{
	char why[LINE_SIZE];

	snprintf(why, sizeof(why), "the session ended it: %.*s", (int)result->cause.size,
		 result->cause.data ? result->cause.data : "");
	return event("end",
		     json_pack("{s:i, s:b, s:s, s:s}", "exitCode", -1, "exited", 0, "status", why, "error", why));
}

static void process_done(struct lair_call *call, void *userdata)
{
	struct process *process = userdata;
	const struct lair_result *result = lair_result(call);
	const char *failed = json_string_value(json_object_get(process->report, "failed"));
	const char *why = json_string_value(json_object_get(process->report, "why"));

	if (failed && process->events && !process->watching && process->streams) {
		struct stream *asker = process->streams;

		stream_leave(asker);
		connect_fail(asker->exchange, failed, "%s", why ? why : "");
	}
	if (failed || !result) {
		streams_end(process, failed ? failed : "lost", why ? why : "");
	} else {
		tell_all(process, process->report ? end_event(process) : lost_event(result));
		streams_end(process, NULL, NULL);
	}
	process_unlink(process);
	sandbox_end_branch(process->sandbox, process->session);
	process_free(process);
}

static void process_kill(struct process *process)
{
	if (process->ending)
		return;
	process->ending = true;
	if (process->watches)
		sandbox_end_branch(process->sandbox, process->session);
	else
		(void)order(process, json_pack("{s:i}", "signal", SIGKILL));
}

void processes_tick(struct sandbox *sandbox, double now)
{
	for (struct process *process = sandbox->processes; process; process = process->next)
		if (process->deadline > 0 && process->deadline <= now)
			process_kill(process);
}

/* ---- finding one ---- */

static struct process *process_find(const struct sandbox *sandbox, const json_t *asked)
{
	const json_t *selector = json_object_get(asked, "process"), *pid = json_object_get(selector, "pid");
	const char *tag = json_string_value(json_object_get(selector, "tag"));

	for (struct process *process = sandbox->processes; process; process = process->next)
		if (!process->watches && !process->ending &&
		    ((json_is_integer(pid) && process->pid == (uint64_t)json_integer_value(pid)) ||
		     (tag && process->tag && strcmp(process->tag, tag) == 0)))
			return process;
	return NULL;
}

/* ---- streams ---- */

static void on_alarm(struct exchange *exchange);

static void alarm_next(struct stream *stream)
{
	double left = stream->deadline > 0 ? fmax(stream->deadline - server_now(), 0.001) : 0;

	if (stream->alive > 0 && (!(left > 0) || stream->alive < left))
		left = stream->alive;
	exchange_alarm(stream->exchange, left, on_alarm);
}

static void on_alarm(struct exchange *exchange)
{
	struct stream *stream = exchange->state;
	struct process *process = stream->process;

	if (stream->deadline > 0 && stream->deadline <= server_now()) {
		stream_leave(stream);
		if (process && stream->owns)
			process_kill(process);
		connect_end(exchange, "deadline_exceeded", "context deadline exceeded");
		return;
	}
	if (process && process->watches)
		stream_tell(stream, json_pack("{s:{}}", "keepalive"));
	else
		connect_send(exchange, event("keepalive", json_object()));
	alarm_next(stream);
}

static void on_gone(struct exchange *exchange)
{
	struct stream *stream = exchange->state;
	struct process *process = stream->process;

	stream_leave(stream);
	/* A command goes on, and may be listened to again; nobody else could hear this watcher. */
	if (process && process->watches && !process->events)
		process_kill(process);
}

static void stream_finish(struct work *work)
{
	struct stream *stream = (struct stream *)work;

	stream_leave(stream);
	envelope_deinit(&stream->envelope);
}

/* The only message of a streaming call. */
static bool stream_opens(struct exchange *exchange)
{
	struct stream *stream = exchange->state;
	struct lair_text body = exchange_body(exchange);
	double seconds = header_seconds(exchange, "Connect-Timeout-Ms", 1e-3);
	bool end = false;
	int r;

	stream->exchange = exchange;
	stream->work.finish = stream_finish;
	r = envelope_add(&stream->envelope, body.data, body.size);
	if (!r)
		r = envelope_next(&stream->envelope, &stream->work.asked, &end);
	stream->work.stream = true;
	stream_begin(exchange, 200, "application/connect+json", STREAM_OPEN);
	if (r || end) {
		connect_end(exchange, "invalid_argument", "the body is no message of connect in JSON");
		return false;
	}
	stream->deadline = seconds > 0 ? server_now() + seconds : 0;
	stream->alive = header_seconds(exchange, "Keepalive-Ping-Interval", 1);
	exchange->on_gone = on_gone;
	alarm_next(stream);
	return true;
}

static void stream_join(struct stream *stream, struct process *process)
{
	stream->process = process;
	stream->next = process->streams;
	process->streams = stream;
}

/* ---- start ---- */

static struct process *process_new(struct sandbox *sandbox, const char *session)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->sandbox = sandbox;
	process->session = strdup(session);
	process->orders = json_array();
	process->early = json_array();
	if (!process->session || !process->orders || !process->early) {
		process_free(process);
		return NULL;
	}
	process->next = sandbox->processes;
	sandbox->processes = process;
	return process;
}

static int process_run(struct process *process, const char *program, const json_t *given)
{
	_cleanup_(freep) char *code = program_cell(program, given);
	struct lair_exec exec = {.session = process->session,
				 .code = lair_text(code),
				 .unlimited = true,
				 .on_output = on_output,
				 .on_display = on_display,
				 .on_ask = on_ask,
				 .userdata = process};
	int r = code ? lair_exec(process->sandbox->tenant->lair, &process->call, &exec) : -ENOMEM;

	if (r) {
		process_unlink(process);
		process_free(process);
		return r;
	}
	lair_on_done(process->call, process_done, process);
	return 0;
}

static bool room_for_another(struct exchange *exchange)
{
	size_t n = 0;

	for (const struct process *at = sandbox_of(exchange)->processes; at; at = at->next)
		n++;
	if (n < PROCESSES_MAX && !sandbox_of(exchange)->dead)
		return true;
	connect_fail(exchange, "resource_exhausted", "this sandbox has too many commands and watchers");
	return false;
}

/* What the program is given: every field is there. */
static json_t *command_given(const struct sandbox *sandbox, const json_t *asked)
{
	const json_t *config = json_object_get(asked, "process");
	json_t *envs = json_deep_copy(sandbox->envs), *own = json_object_get(config, "envs");
	json_t *args = json_object_get(config, "args"), *cwd = json_object_get(config, "cwd");
	json_t *size = json_object_get(json_object_get(asked, "pty"), "size"), *given;
	const char *cmd = json_string_value(json_object_get(config, "cmd"));

	if (json_is_object(own))
		json_object_update(envs, own);
	given = json_pack("{s:s, s:o, s:o, s:b}", "cmd", cmd ? cmd : "", "args",
			  json_is_array(args) ? json_incref(args) : json_array(), "envs", envs, "stdin",
			  json_is_true(json_object_get(asked, "stdin")));
	json_object_set_new(given, "cwd", json_is_string(cwd) ? json_incref(cwd) : json_null());
	json_object_set_new(given, "pty",
			    json_object_get(asked, "pty")
				    ? json_pack("{s:I, s:I}", "rows",
						json_integer_value(json_object_get(size, "rows")), "cols",
						json_integer_value(json_object_get(size, "cols")))
				    : json_null());
	return given;
}

static void start_branched(struct exchange *exchange)
{
	struct stream *stream = exchange->state;
	struct sandbox *sandbox = stream->work.sandbox;
	struct process *process = sandbox->dead ? NULL : process_new(sandbox, stream->work.branch);
	const char *tag = json_string_value(json_object_get(stream->work.asked, "tag"));
	json_t *given, *config = json_object_get(stream->work.asked, "process");
	int r;

	if (!process) {
		e2b_lost(exchange);
		return;
	}
	process->config = json_deep_copy(config);
	process->tag = tag ? strdup(tag) : NULL;
	process->pty = json_object_get(stream->work.asked, "pty") != NULL;
	process->deadline = stream->deadline;
	stream_join(stream, process);
	given = command_given(sandbox, stream->work.asked);
	r = process_run(process, "command", given);
	json_decref(given);
	if (r) {
		stream->process = NULL;
		connect_end(exchange, "internal", "the command could not be started");
	}
}

static void start_found(struct exchange *exchange)
{
	struct stream *stream = exchange->state;
	char purpose[32];

	if (!stream_opens(exchange))
		return;
	stream->owns = true;
	snprintf(purpose, sizeof(purpose), "p%llu-%08x", (unsigned long long)++stream->work.sandbox->serial,
		 randombytes_random());
	if (room_for_another(exchange))
		sandbox_branch(exchange, purpose, false, start_branched);
}

void process_start_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct stream), start_found);
}

static void connect_found(struct exchange *exchange)
{
	struct stream *stream = exchange->state;
	struct process *process;

	if (!stream_opens(exchange))
		return;
	process = process_find(stream->work.sandbox, stream->work.asked);
	if (!process) {
		connect_end(exchange, "not_found", "process not found");
		return;
	}
	stream_join(stream, process);
	if (process->pid)
		connect_send(exchange, event("start", json_pack("{s:I}", "pid", (json_int_t)process->pid)));
}

void process_connect_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct stream), connect_found);
}

/* ---- calls with one answer ---- */

static void list_found(struct exchange *exchange)
{
	json_t *list = json_array();

	for (const struct process *process = sandbox_of(exchange)->processes; process; process = process->next) {
		json_t *info;

		if (process->watches || process->ending || !process->pid)
			continue;
		info = json_pack("{s:O, s:I}", "config", process->config, "pid", (json_int_t)process->pid);
		if (process->tag)
			json_object_set_new(info, "tag", json_string(process->tag));
		json_array_insert_new(list, 0, info);
	}
	answer_json(exchange, 200, json_pack("{s:o}", "processes", list));
}

void process_list_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), list_found);
}

/* The process that the body names; NULL after it has been answered. */
static struct process *process_asked(struct exchange *exchange)
{
	struct work *work = exchange->state;
	struct process *process;

	if (!e2b_body(exchange, exchange_body(exchange), &work->asked))
		return NULL;
	process = process_find(work->sandbox, work->asked);
	if (!process)
		connect_fail(exchange, "not_found", "process not found");
	return process;
}

/* In pieces, so that no order is large. */
static bool input(struct process *process, const json_t *asked)
{
	const json_t *in = json_object_get(asked, "input"), *data = json_object_get(in, "stdin");
	const char *text = json_string_value(data ? data : json_object_get(in, "pty"));
	size_t left = text ? strlen(text) : 0, n;
	bool good = true;

	for (; left > 0 && good; text += n, left -= n) {
		n = MIN(left, INPUT_PIECE / 3 * 4);
		good = order(process, json_pack("{s:s#}", "in", text, (int)n));
	}
	return good;
}

static void answer_done(struct exchange *exchange, bool good)
{
	if (good)
		answer_json(exchange, 200, json_object());
	else
		connect_fail(exchange, "resource_exhausted",
			     "the command does not read what it has been sent already");
}

static void input_found(struct exchange *exchange)
{
	struct process *process = process_asked(exchange);
	const struct work *work = exchange->state;

	if (process)
		answer_done(exchange, input(process, work->asked));
}

void process_input_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), input_found);
}

static void close_found(struct exchange *exchange)
{
	struct process *process = process_asked(exchange);

	if (process)
		answer_done(exchange, order(process, json_pack("{s:b}", "close", 1)));
}

void process_close_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), close_found);
}

static void signal_found(struct exchange *exchange)
{
	struct process *process = process_asked(exchange);
	const struct work *work = exchange->state;
	const json_t *named = json_object_get(work->asked, "signal");
	const char *name = json_string_value(named);
	bool kills = name ? strcmp(name, "SIGNAL_SIGKILL") == 0 : json_integer_value(named) == SIGKILL;

	if (process) {
		answer_done(exchange, order(process, json_pack("{s:i}", "signal", kills ? SIGKILL : SIGTERM)));
		process->ending = process->ending || kills;
	}
}

void process_signal_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), signal_found);
}

static void update_found(struct exchange *exchange)
{
	struct process *process = process_asked(exchange);
	const struct work *work = exchange->state;
	json_t *size = json_object_get(json_object_get(work->asked, "pty"), "size");

	if (process)
		answer_done(exchange,
			    order(process, json_pack("{s:{s:I, s:I}}", "size", "rows",
						     json_integer_value(json_object_get(size, "rows")), "cols",
						     json_integer_value(json_object_get(size, "cols")))));
}

void process_update_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), update_found);
}

/* ---- StreamInput: messages that the client sends one after the other ---- */

static bool streamed(struct stream *stream, const json_t *message)
{
	json_t *start = json_object_get(message, "start"), *data = json_object_get(message, "data");
	struct process *process;

	if (start) {
		json_decref(stream->work.asked);
		stream->work.asked = json_incref(start);
	}
	/* Between two messages it may have ended. */
	process = start || data ? process_find(stream->work.sandbox, stream->work.asked) : NULL;
	if ((start || data) && !process) {
		connect_fail(stream->exchange, "not_found", "process not found");
		return false;
	}
	if (data && !input(process, data)) {
		connect_fail(stream->exchange, "resource_exhausted", "the command does not read");
		return false;
	}
	return true;
}

static void streamed_all(struct stream *stream)
{
	struct exchange *exchange = stream->exchange;

	stream->work.stream = true;
	stream_begin(exchange, 200, "application/connect+json", STREAM_OPEN);
	connect_send(exchange, json_object());
	connect_end(exchange, NULL, NULL);
}

static size_t on_body(struct exchange *exchange, const char *data, size_t size)
{
	struct stream *stream = exchange->state;
	json_t *message = NULL;
	bool end = false, good = true;
	int r = -EAGAIN;

	if (!stream || !stream->found) {
		if (stream && size == 0)
			stream->over = true;
		return 0;
	}
	if (size > 0)
		r = envelope_add(&stream->envelope, data, size);
	while (good && !exchange->response && (r = envelope_next(&stream->envelope, &message, &end)) == 0) {
		good = end || streamed(stream, message);
		json_decref(message);
	}
	if (!exchange->response && r != -EAGAIN && r != 0)
		connect_fail(exchange, "invalid_argument", "the body is no messages of connect in JSON");
	if (size == 0 && !exchange->response)
		streamed_all(stream);
	return size;
}

static void stream_found(struct exchange *exchange)
{
	struct stream *stream = exchange->state;

	stream->exchange = exchange;
	stream->work.finish = stream_finish;
	stream->found = true;
	if (stream->over)
		(void)on_body(exchange, NULL, 0);
	else
		exchange_more(exchange);
}

void process_stream_begin(struct exchange *exchange)
{
	exchange->on_body = on_body;
	sandbox_enter(exchange, sizeof(struct stream), stream_found);
}

/* ---- watchers ---- */

static void watch_start(struct exchange *exchange, bool keeps)
{
	struct stream *stream = exchange->state;
	struct sandbox *sandbox = stream->work.sandbox;
	struct process *process = sandbox->dead ? NULL : process_new(sandbox, stream->work.branch);
	const char *path = json_string_value(json_object_get(stream->work.asked, "path"));
	json_t *given;
	int r;

	if (!process) {
		e2b_lost(exchange);
		return;
	}
	process->watches = true;
	process->tag = strdup(stream->work.branch + strlen(sandbox->session) + 1);
	process->events = keeps ? json_array() : NULL;
	stream_join(stream, process);
	given = json_pack("{s:s, s:b}", "path", path ? path : "", "recursive",
			  json_is_true(json_object_get(stream->work.asked, "recursive")));
	r = process_run(process, "watch", given);
	json_decref(given);
	if (r) {
		stream->process = NULL;
		connect_fail(exchange, "internal", "the directory cannot be watched");
	}
}

static void watch_branched(struct exchange *exchange)
{
	watch_start(exchange, false);
}

static void watcher_branched(struct exchange *exchange)
{
	watch_start(exchange, true);
}

static void watch_branch(struct exchange *exchange, handler *then)
{
	char purpose[32];

	snprintf(purpose, sizeof(purpose), "w%llu-%08x", (unsigned long long)++sandbox_of(exchange)->serial,
		 randombytes_random());
	if (room_for_another(exchange))
		sandbox_branch(exchange, purpose, false, then);
}

static void watch_found(struct exchange *exchange)
{
	struct stream *stream = exchange->state;

	if (!stream_opens(exchange))
		return;
	stream->owns = true;
	watch_branch(exchange, watch_branched);
}

void watch_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct stream), watch_found);
}

static void watcher_create_found(struct exchange *exchange)
{
	struct stream *stream = exchange->state;

	stream->exchange = exchange;
	stream->work.finish = stream_finish;
	if (e2b_body(exchange, exchange_body(exchange), &stream->work.asked))
		watch_branch(exchange, watcher_branched);
}

void watcher_create_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct stream), watcher_create_found);
}

static struct process *watcher_asked(struct exchange *exchange)
{
	struct work *work = exchange->state;
	const char *id;

	if (!e2b_body(exchange, exchange_body(exchange), &work->asked))
		return NULL;
	id = json_string_value(json_object_get(work->asked, "watcherId"));
	for (struct process *process = work->sandbox->processes; process && id; process = process->next)
		if (process->watches && process->events && process->tag && strcmp(process->tag, id) == 0)
			return process;
	connect_fail(exchange, "not_found", "watcher not found");
	return NULL;
}

static void watcher_events_found(struct exchange *exchange)
{
	struct process *process = watcher_asked(exchange);

	if (!process)
		return;
	answer_json(exchange, 200, json_pack("{s:o}", "events", process->events));
	process->events = json_array();
}

void watcher_events_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), watcher_events_found);
}

static void watcher_remove_found(struct exchange *exchange)
{
	struct process *process = watcher_asked(exchange);

	if (!process)
		return;
	process_kill(process);
	answer_json(exchange, 200, json_object());
}

void watcher_remove_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), watcher_remove_found);
}
