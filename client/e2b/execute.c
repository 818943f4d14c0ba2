/* E2B's interpreter: cells whose output streams as lines of JSON. */
#include "e2b.h"

#include "base/jsonrpc.h"
#include "base/result.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ALIVE_SECONDS 5.0
/* A cell of a notebook: _ and Out, and tracebacks in the error alone. With more forms of tables and figures. */
#define NOTEBOOK "{\"kind\": \"cell\", \"header\": {}, \"forms\": true}"

#define NOTICE "application/vnd.lair.notebook+json"

struct run {
	struct work work;
	struct exchange *exchange;
	char *session, *code;
	struct text_rest rests[2]; /* of each stream */
};

/* NAME=value of the sandbox's variables and of @more, which come later, as environment_of. */
static char **sandbox_environment(const struct sandbox *sandbox, const json_t *more)
{
	json_t *all = json_deep_copy(sandbox->envs), *value;
	const char *name;
	char **list;
	void *next;
	bool bad;

	if (json_is_object(more))
		json_object_update(all, (json_t *)(uintptr_t)more);
	json_object_foreach_safe(all, next, name, value)
	{
		if (!json_text_value(value) || !*name || strchr(name, '='))
			json_object_del(all, name);
	}
	list = environment_of(all, &bad);
	json_decref(all);
	return list;
}

static void run_finish(struct work *work)
{
	struct run *run = (struct run *)work;

	free(run->session);
	free(run->code);
}

static json_t *now_document(void)
{
	struct timespec now;
	struct tm tm;
	char text[64];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%06ld+00:00", tm.tm_year + 1900, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, now.tv_nsec / 1000);
	return json_string(text);
}

/* A client that does not read holds up its cell, and loses its connection in the end, but no part of its answer.
 */
static void line(struct exchange *exchange, json_t *document)
{
	if (!stream_line(exchange, document))
		stream_break(exchange);
}

static void output_line(struct exchange *exchange, enum lair_stream stream, struct lair_text text)
{
	line(exchange, json_pack("{s:s, s:o, s:o}", "type", stream == LAIR_STDERR ? "stderr" : "stdout", "text",
				 json_text(text), "timestamp", now_document()));
}

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	struct run *run = userdata;
	_cleanup_(freep) char *owned = NULL;

	(void)call;
	if (!run->exchange->gone && text_whole(&run->rests[stream], &data, &owned))
		output_line(run->exchange, stream, data);
}

/* Forms that are of use to a notebook only. */
static bool is_notice(struct lair_items bundle)
{
	struct lair_data item;
	size_t cursor = 0;

	while (lair_next_data(bundle, &cursor, &item))
		if (text_is(item.type, NOTICE))
			return true;
	return false;
}

static void on_display(struct lair_call *call, const struct lair_display *display, void *userdata)
{
	struct run *run = userdata;

	(void)call;
	if (!run->exchange->gone && !display->clear && !is_notice(display->data))
		line(run->exchange, result_line(display->data, (struct lair_text){.data = NULL}, false));
}

static void on_alarm(struct exchange *exchange)
{
	line(exchange, json_pack("{s:s}", "type", "keepalive"));
	exchange_alarm(exchange, ALIVE_SECONDS, on_alarm);
}

static json_t *exit_line(const struct lair_result *result)
{
	char status[32], traceback[64];

	snprintf(status, sizeof(status), "%d", result->returncode);
	snprintf(traceback, sizeof(traceback), "%s: %s", causes[CAUSE_EXIT].exception, status);
	return json_pack("{s:s, s:s, s:s, s:s}", "type", "error", "name", causes[CAUSE_EXIT].exception, "value",
			 status, "traceback", traceback);
}

static const struct note_style style = {.sentences = true};

static json_t *error_line(const struct lair_result *result)
{
	char value[CAUSE_SIZE];

	if (result->error_name.data)
		return json_pack("{s:s, s:o, s:o, s:o}", "type", "error", "name", json_text(result->error_name),
				 "value", json_text(result->error_value.data ? result->error_value : lair_text("")),
				 "traceback",
				 json_text(result->error_traceback.data ? result->error_traceback : lair_text("")));
	if (!result->cause.data)
		return NULL;
	if (result_left(result))
		return exit_line(result);
	cause_words(value, result, &style);
	return json_pack("{s:s, s:s, s:s, s:s}", "type", "error", "name", "CellEnded", "value", value, "traceback",
			 value);
}

/* The format has no place for them but stderr. */
static void notice_line(void *exchange, enum note note, const char *sentence)
{
	_cleanup_(freep) char *text = NULL;

	(void)note;
	if (asprintf(&text, "%s\n", sentence) < 0)
		text = NULL;
	output_line(exchange, LAIR_STDERR, lair_text(text ? text : sentence));
}

static void run_report(struct exchange *exchange, const struct lair_result *result)
{
	struct run *run = exchange->state;
	json_t *error = error_line(result);

	for (enum lair_stream stream = LAIR_STDOUT; stream <= LAIR_STDERR; stream++)
		if (run->rests[stream].size > 0)
			output_line(exchange, stream, text_rest(&run->rests[stream]));
	result_notes(result, &style, notice_line, exchange);
	if (result->text.data || result->data.data)
		line(exchange, result_line(result->data, result->text, true));
	if (error)
		line(exchange, error);
	line(exchange,
	     json_pack("{s:s, s:I}", "type", "number_of_executions", "execution_count", (json_int_t)result->cell));
	line(exchange, json_pack("{s:s}", "type", "end_of_execution"));
}

static void run_done(struct exchange *exchange)
{
	const struct lair_result *result = lair_result(exchange->call);

	exchange_alarm(exchange, 0, NULL);
	if (!result) {
		/* The sandbox was killed: the client is to see that this is no whole answer. */
		stream_break(exchange);
		return;
	}
	run_report(exchange, result);
	stream_end(exchange);
}

/* The shell is a program of the session, which starts anew with each cell. */
static char *code_of(const char *code, const char *language)
{
	_cleanup_(freep) char *packed = NULL;
	char *cell = NULL;

	if (strcmp(language, "bash") != 0)
		return strdup(code);
	packed = text_base64(lair_text(code));
	if (!packed || asprintf(&cell,
				"__import__('subprocess').run(['/bin/bash', '-c', "
				"__import__('base64').b64decode('%s').decode()], stdin=-3) and None",
				packed) < 0)
		return NULL;
	return cell;
}

static bool run_where(struct exchange *exchange)
{
	struct run *run = exchange->state;
	const char *id = json_string_value(json_object_get(run->work.asked, "context_id"));
	const char *language = json_string_value(json_object_get(run->work.asked, "language"));
	const char *code = json_string_value(json_object_get(run->work.asked, "code"));
	const struct context *context = id ? context_find(run->work.sandbox, id) : NULL;

	if (id && language) {
		answer_text(exchange, 400, "text/plain",
			    lair_text("Only one of context_id or language can be provided"));
	} else if (id && !context && strcmp(id, DEFAULT_CONTEXT) != 0) {
		no_context(exchange, id);
	} else if (!code || (!context && !language_named(language))) {
		answer_text(
			exchange, 400, "text/plain",
			lair_text(code ? "the languages of this sandbox are python and bash" : "there is no code"));
	} else {
		run->session = strdup(context ? context->session : run->work.sandbox->session);
		run->code = code_of(code, context ? context->language : language_named(language));
		if (run->session && run->code)
			return true;
		answer_error(exchange, -ENOMEM, "out of memory");
	}
	return false;
}

static void execute_found(struct exchange *exchange)
{
	struct run *run = exchange->state;
	_cleanup_(freep) char **env = NULL;
	struct lair_exec exec = {.unlimited = true,
				 .notebook = NOTEBOOK,
				 .on_output = on_output,
				 .on_display = on_display,
				 .userdata = run};
	struct lair *lair;
	int r;

	run->exchange = exchange;
	run->work.finish = run_finish;
	if (!e2b_body(exchange, exchange_body(exchange), &run->work.asked) || !run_where(exchange))
		return;
	env = sandbox_environment(run->work.sandbox, json_object_get(run->work.asked, "env_vars"));
	exec.session = run->session;
	exec.code = lair_text(run->code);
	exec.env = (const char *const *)env;
	exec.birth = strcmp(run->session, run->work.sandbox->session) == 0 ? run->work.sandbox->birth : 0;
	lair = exchange_flow(exchange);
	if (!lair)
		return;
	r = env ? lair_exec(lair, &exchange->call, &exec) : -ENOMEM;
	if (r) {
		exchange_wait(exchange, r, NULL);
		return;
	}
	exchange->interrupts = true;
	exchange->on_gone = cell_left;
	stream_begin(exchange, 200, "application/json", STREAM_OPEN);
	exchange_alarm(exchange, ALIVE_SECONDS, on_alarm);
	exchange_wait_any(exchange, 0, run_done);
}

void execute_code_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct run), execute_found);
}
