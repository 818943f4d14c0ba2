/* Commands and watchers: each is a cell in a branch of its own, which ends with it. */
#include "processes.h"

#include "base/text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define PROCESSES_MAX 256
#define ORDERS_MAX 1024
#define REPORT "application/vnd.lair.e2b+json"

static void process_free(struct process *process)
{
	(void)lair_call_free(process->call);
	(void)flow_leave(process->flow);
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

static void order_give(struct process *process)
{
	const char *line = json_string_value(json_array_get(process->orders, 0));
	struct lair_call *answer = NULL;
	int r;

	if (!process->asks || (!line && !process->report))
		return;
	process->asks = false;
	/* The end of its input is the end of the cell. */
	r = lair_input(process->flow->lair, &answer, process->call,
		       line ? lair_text(line) : (struct lair_text){.data = NULL});
	call_forget(answer, r);
	json_array_remove(process->orders, 0);
}

bool process_order(struct process *process, json_t *order)
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
		process_tell(process, process_event("start", json_pack("{s:I}", "pid", (json_int_t)process->pid)));
		json_array_foreach(process->early, i, message)
		{
			process_tell(process, json_incref(message));
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

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	struct process *process = userdata;
	_cleanup_(freep) char *packed = NULL;
	const char *name;
	json_t *message;

	(void)call;
	if (process->watches) {
		if (stream == LAIR_STDOUT)
			watch_output(process, data);
		return;
	}
	packed = process->streams ? text_base64(data) : NULL;
	if (!packed)
		return;
	name = process->pty ? "pty" : stream == LAIR_STDERR ? "stderr" : "stdout";
	message = process_event("data", json_pack("{s:s}", name, packed));
	if (process->pid)
		process_tell(process, message);
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
	return process_event("end", end);
}

static json_t *lost_event(const struct lair_result *result)
{
	char why[LINE_SIZE];

	snprintf(why, sizeof(why), "the session ended it: %.*s", (int)result->cause.size,
		 result->cause.data ? result->cause.data : "");
	return process_event(
		"end", json_pack("{s:i, s:b, s:s, s:s}", "exitCode", -1, "exited", 0, "status", why, "error", why));
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
		process_tell(process, process->report ? end_event(process) : lost_event(result));
		streams_end(process, NULL, NULL);
	}
	process_unlink(process);
	sandbox_end_branch(process->sandbox, process->session);
	process_free(process);
}

void process_kill(struct process *process)
{
	if (process->ending)
		return;
	process->ending = true;
	if (process->watches)
		sandbox_end_branch(process->sandbox, process->session);
	else
		(void)process_order(process, json_pack("{s:i}", "signal", SIGKILL));
}

void processes_tick(struct sandbox *sandbox, double now)
{
	for (struct process *process = sandbox->processes; process; process = process->next)
		if (process->deadline > 0 && process->deadline <= now)
			process_kill(process);
}

/* ---- finding one ---- */

struct process *process_find(const struct sandbox *sandbox, const json_t *asked)
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

struct process *process_new(struct sandbox *sandbox, const char *session)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->sandbox = sandbox;
	process->flow = flow_use(sandbox->tenant);
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

int process_run(struct process *process, const char *program, const json_t *given)
{
	_cleanup_(freep) char *code = program_cell(program, given);
	struct lair_exec exec = {.session = process->session,
				 .code = lair_text(code),
				 .unlimited = true,
				 .on_output = on_output,
				 .on_display = on_display,
				 .on_ask = on_ask,
				 .userdata = process};
	const char *sentence;
	int r = code ? line_open(process->flow, &sentence) : -ENOMEM;

	if (!r)
		r = lair_exec(process->flow->lair, &process->call, &exec);
	if (r) {
		process_unlink(process);
		process_free(process);
		return r;
	}
	lair_on_done(process->call, process_done, process);
	return 0;
}

bool process_room(struct exchange *exchange)
{
	size_t n = 0;

	for (const struct process *at = sandbox_of(exchange)->processes; at; at = at->next)
		n++;
	if (n < PROCESSES_MAX && !sandbox_of(exchange)->dead)
		return true;
	connect_fail(exchange, "resource_exhausted", "this sandbox has too many commands and watchers");
	return false;
}
