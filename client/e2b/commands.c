/* Commands: what starts one, listens to it, and tells it something. */
#include "processes.h"

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

/* The input of a process, in one message. */
#define INPUT_PIECE ((size_t)48 << 10)

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
	if (process_room(exchange))
		sandbox_branch(exchange, purpose, start_branched);
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
		connect_send(exchange, process_event("start", json_pack("{s:I}", "pid", (json_int_t)process->pid)));
}

void process_connect_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct stream), connect_found);
}

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
bool process_input(struct process *process, const json_t *asked)
{
	const json_t *in = json_object_get(asked, "input"), *data = json_object_get(in, "stdin");
	const char *text = json_string_value(data ? data : json_object_get(in, "pty"));
	size_t left = text ? strlen(text) : 0, n;
	bool good = true;

	for (; left > 0 && good; text += n, left -= n) {
		n = MIN(left, INPUT_PIECE / 3 * 4);
		good = process_order(process, json_pack("{s:s#}", "in", text, (int)n));
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
		answer_done(exchange, process_input(process, work->asked));
}

void process_input_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), input_found);
}

static void close_found(struct exchange *exchange)
{
	struct process *process = process_asked(exchange);

	if (process)
		answer_done(exchange, process_order(process, json_pack("{s:b}", "close", 1)));
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
		answer_done(exchange,
			    process_order(process, json_pack("{s:i}", "signal", kills ? SIGKILL : SIGTERM)));
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
		answer_done(
			exchange,
			process_order(process, json_pack("{s:{s:I, s:I}}", "size", "rows",
							 json_integer_value(json_object_get(size, "rows")), "cols",
							 json_integer_value(json_object_get(size, "cols")))));
}

void process_update_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct work), update_found);
}
