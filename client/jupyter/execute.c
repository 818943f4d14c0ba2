/* Cells: their output goes out as it comes, and answers to their questions come in. While one runs, a file beside
 * the connection file names it, so that the next kernel of the session can resume it. */
#include "bridge.h"

#include "base/json.h"
#include "base/result.h"
#include "base/text.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

/* Output is collected for so long, so that code that prints much does not flood the client. */
#define GATHER 0.01
#define PIECE ((size_t)64 << 10)
#define WRITTEN (QUOTED_SIZE(PIECE) + 64)
/* A cell that has not heeded so many interrupts is killed. Its session goes back to the state before it. */
#define INTERRUPTS 3
#define KEY_SIZE 33

/* ---- output ---- */

/* Written at once: there may be many megabytes. */
static struct lair_text stream_written(struct gathered *gathered, size_t size)
{
	static const char *const begins[] = {
		[LAIR_STDOUT] = "{\"name\":\"stdout\",\"text\":",
		[LAIR_STDERR] = "{\"name\":\"stderr\",\"text\":",
	};
	const char *begin = begins[gathered->stream == LAIR_STDERR ? LAIR_STDERR : LAIR_STDOUT];
	size_t n = strlen(begin);

	memcpy(gathered->written, begin, n);
	n += message_quote(gathered->written + n, (struct lair_text){.data = gathered->data, .size = size});
	gathered->written[n++] = '}';
	return (struct lair_text){.data = gathered->written, .size = n};
}

/* The rest is the beginning of a character, and waits for its end. */
static void gathered_send(struct bridge *bridge, size_t size)
{
	struct gathered *gathered = &bridge->gathered;
	struct job *current = bridge_current(bridge);
	size_t left = gathered->size - size;
	struct outgoing message = {
		.type = "stream",
		.written = stream_written(gathered, size),
		.parent = current ? job_header(current) : NULL,
	};

	/* So that publish() finds nothing that waits. */
	gathered->size = 0;
	publish(bridge, message);
	memmove(gathered->data, gathered->data + size, left);
	gathered->size = left;
	gathered->due = left > 0 ? clock_seconds() + GATHER : 0;
}

void output_flush(struct bridge *bridge)
{
	if (bridge->gathered.size > 0)
		gathered_send(bridge, bridge->gathered.size);
}

/* Whole characters, if there are any. */
static void output_flush_some(struct bridge *bridge)
{
	size_t size = bridge->gathered.size, cut = text_cut_end(bridge->gathered.data, size);

	gathered_send(bridge, cut < size ? size - cut : size);
}

static int room_make(struct gathered *gathered)
{
	if (gathered->allocated)
		return 0;
	gathered->data = malloc(PIECE);
	gathered->written = malloc(WRITTEN);
	if (!gathered->data || !gathered->written) {
		free(gathered->data);
		free(gathered->written);
		gathered->data = gathered->written = NULL;
		return -ENOMEM;
	}
	gathered->allocated = PIECE;
	return 0;
}

void output_gather(struct bridge *bridge, enum lair_stream stream, struct lair_text data)
{
	struct gathered *gathered = &bridge->gathered;

	if (gathered->size > 0 && gathered->stream != stream)
		output_flush(bridge);
	if (room_make(gathered))
		return;
	gathered->stream = stream;
	while (data.size > 0) {
		size_t n = MIN(data.size, gathered->allocated - gathered->size);

		memcpy(gathered->data + gathered->size, data.data, n);
		gathered->size += n;
		data.data += n;
		data.size -= n;
		if (gathered->size == gathered->allocated)
			output_flush_some(bridge);
	}
	if (gathered->size > 0 && !(gathered->due > 0))
		gathered->due = clock_seconds() + GATHER;
}

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	const struct job *job = userdata;

	(void)call;
	output_gather(job->bridge, stream, data);
}

static void on_display(struct lair_call *call, const struct lair_display *display, void *userdata)
{
	(void)call;
	show_display(userdata, display);
}

/* ---- questions of a cell ---- */

static void on_ask(struct lair_call *call, struct lair_text prompt, bool password, void *userdata)
{
	struct job *job = userdata;

	(void)call;
	job->asks = true;
	output_flush(job->bridge);
	job_send(job, CHANNEL_STDIN,
		 (struct outgoing){
			 .type = "input_request",
			 .content = json_pack("{s:o, s:b}", "prompt", json_text(prompt), "password", password)});
}

void input_take(struct bridge *bridge, const struct message *message)
{
	const json_t *value = json_object_get(message->content, "value");
	struct job *current = bridge_current(bridge);
	struct lair_call *call = NULL;
	struct lair_text line = {.data = json_string_value(value), .size = json_string_length(value)};

	if (!current || !current->asks || !current->call)
		return;
	current->asks = false;
	(void)lair_input(bridge->lair, &call, current->call, line);
	(void)lair_call_free(call);
}

void bridge_interrupt(struct bridge *bridge)
{
	struct job *current = bridge_current(bridge);
	struct lair_call *call = NULL;

	if (!current || !current->call || !current->handler->is_cell)
		return;
	current->asks = false;
	if (++current->interrupts < INTERRUPTS)
		(void)lair_cancel(bridge->lair, &call, current->call);
	else
		(void)lair_kill_cell(bridge->lair, &call, current->call);
	(void)lair_call_free(call);
}

/* ---- the file that says which cell runs ---- */

/* The file, locked: two kernels of one session may have their connection files in the same directory, and what is
 * one that lives is nobody else's. Returns a descriptor, or -1. */
static int outstanding_open(const struct bridge *bridge, int flags)
{
	int fd = open(bridge->outstanding, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	struct stat status;

	/* Its owner may have removed it meanwhile. */
	if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &status) < 0 || status.st_nlink == 0))
		fd = fd_close(fd);
	return fd;
}

static void outstanding_remove(struct bridge *bridge)
{
	if (bridge->outstanding_fd < 0)
		return;
	(void)unlink(bridge->outstanding);
	bridge->outstanding_fd = fd_close(bridge->outstanding_fd);
}

static void outstanding_write(const struct job *job, const char *key)
{
	struct bridge *bridge = job->bridge;
	json_t *document =
		json_pack("{s:s, s:s, s:O}", "session", bridge->session, "key", key, "header", job_header(job));
	int fd;

	outstanding_remove(bridge);
	fd = bridge->outstanding_fd = document ? outstanding_open(bridge, O_CREAT) : -1;
	if (fd >= 0 && ftruncate(fd, 0) == 0)
		(void)json_dumpfd(document, fd, JSON_COMPACT);
	json_decref(document);
}

/* ---- ends ---- */

static json_t *reply_of(struct job *job, const char *status)
{
	return json_pack("{s:s, s:I}", "status", status, "execution_count", (json_int_t)job->bridge->count);
}

static json_t *payload_take(struct job *job)
{
	json_t *payload = steal_ptr(&job->payload);

	return payload ? payload : json_array();
}

static void execute_succeed(struct job *job)
{
	json_t *reply = reply_of(job, "ok"), *told = steal_ptr(&job->told);

	json_object_set_new(reply, "user_expressions", told ? told : json_object());
	json_object_set_new(reply, "payload", payload_take(job));
	job_reply(job, reply);
}

/* Cells that its client has sent behind a cell that fails are not run. Cells of other clients are. */
static void behind_abort(const struct job *job)
{
	const char *client = message_text(job_header(job), "session");

	bridge_receive(job->bridge);
	for (struct job *at = job->bridge->first; at; at = at->next)
		if (!at->begun && at->handler->begin == execute_begin &&
		    strcmp(message_text(job_header(at), "session"), client) == 0)
			at->aborted = true;
}

/* @error: ename, evalue and traceback, taken over. */
static void execute_fail(struct job *job, json_t *error)
{
	json_t *reply = reply_of(job, "error");

	publish(job->bridge,
		(struct outgoing){.type = "error", .content = json_deep_copy(error), .parent = job_header(job)});
	json_object_update(reply, error);
	json_object_set_new(reply, "user_expressions", json_object());
	json_object_set_new(reply, "payload", payload_take(job));
	json_decref(error);
	if (message_flag(job->message.content, "stop_on_error", true))
		behind_abort(job);
	job_reply(job, reply);
}

void execute_refuse(struct job *job, const char *name, const char *sentence)
{
	execute_fail(job, json_pack("{s:s, s:o, s:[o]}", "ename", name, "evalue", json_text(lair_text(sentence)),
				    "traceback", json_text(lair_text(sentence))));
}

void execute_refused(struct job *job)
{
	if (*lair_call_setting(job->call))
		tell_line(job, "%s decides this.", lair_call_setting(job->call));
	execute_refuse(job, "LairError", lair_call_error(job->call));
}

/* With what directives have to say. */
void execute_done(struct job *job)
{
	execute_succeed(job);
}

/* ---- user_expressions ---- */

static void expressions_next(struct job *job);

static json_t *expression_document(const struct lair_result *result, const struct bridge *bridge)
{
	json_t *data, *metadata, *error = result_error(bridge, result);

	if (error) {
		json_object_set_new(error, "status", json_string("error"));
		return error;
	}
	data = forms_of(result->data, &metadata);
	json_object_set_new(data, "text/plain", json_text(result->text.data ? result->text : lair_text("None")));
	return json_pack("{s:s, s:o, s:o}", "status", "ok", "data", data, "metadata", metadata);
}

static void expression_done(struct job *job)
{
	struct bridge *bridge = job->bridge;
	const struct lair_result *result = lair_outcome(job->call) ? NULL : lair_result(job->call);
	json_t *told;

	if (result) {
		bridge->cells = result->cell;
		state_note(bridge, result->cell, false);
		told = expression_document(result, bridge);
	} else {
		told = json_pack("{s:s, s:s, s:s, s:[]}", "status", "error", "ename", "LairError", "evalue",
				 lair_call_error(job->call), "traceback");
	}
	json_object_set_new(job->told, json_object_iter_key(job->expression), told);
	job->expression =
		json_object_iter_next(json_object_get(job->message.content, "user_expressions"), job->expression);
	expressions_next(job);
}

static void expressions_next(struct job *job)
{
	struct bridge *bridge = job->bridge;
	const json_t *code = job->expression ? json_object_iter_value(job->expression) : NULL;
	struct lair_exec exec = {
		.session = bridge->session,
		.notebook = "{\"kind\": \"silent\"}",
		.code = {.data = json_string_value(code), .size = json_string_length(code)},
	};

	job->call = lair_call_free(job->call);
	if (!code) {
		execute_succeed(job);
		return;
	}
	if (!exec.code.data)
		exec.code = lair_text("");
	job_wait(job, lair_exec(bridge->lair, &job->call, &exec), expression_done);
}

static void expressions_begin(struct job *job)
{
	json_t *wanted = json_object_get(job->message.content, "user_expressions");

	if (!json_is_object(wanted) || json_object_size(wanted) == 0) {
		execute_succeed(job);
		return;
	}
	job->told = json_object();
	job->expression = json_object_iter(wanted);
	expressions_next(job);
}

/* ---- a cell ---- */

static void value_show(struct job *job, const struct lair_result *result)
{
	uint64_t count = job->bridge->count + (job->shown ? 0 : 1);
	json_t *data, *metadata;

	if (!result->text.data || job->silent)
		return;
	data = forms_of(result->data, &metadata);
	json_object_set_new(data, "text/plain", json_text(result->text));
	publish(job->bridge,
		(struct outgoing){.type = "execute_result",
				  .content = json_pack("{s:I, s:o, s:o}", "execution_count", (json_int_t)count,
						       "data", data, "metadata", metadata),
				  .parent = job_header(job)});
}

static void result_note(struct bridge *bridge, const struct lair_result *result, bool shown)
{
	if (bridge->birth && result->birth != bridge->birth)
		bridge->n_states = bridge->count = 0;
	if (shown)
		bridge->count++;
	bridge->birth = result->birth;
	bridge->cells = result->cell;
	if (result_continues(result))
		state_note(bridge, result->cell, shown);
	else if (result_fate(result) == FATE_ROLLED_BACK)
		state_back(bridge, result->restored);
	else
		bridge->n_states = 0;
}

static void cell_done(struct job *job)
{
	const struct lair_result *result = lair_outcome(job->call) ? NULL : lair_result(job->call);
	json_t *error;

	outstanding_remove(job->bridge);
	if (!result) {
		execute_refused(job);
		return;
	}
	result_note(job->bridge, result, job->shown);
	show_notices(job, result);
	error = result_error(job->bridge, result);
	if (error) {
		execute_fail(job, error);
		return;
	}
	value_show(job, result);
	expressions_begin(job);
}

/* How the session is to run it. New. */
static char *note_of(const struct job *job, const char *kind)
{
	json_t *note = json_pack("{s:s, s:O, s:I}", "kind", kind, "header", job_header(job), "count",
				 (json_int_t)job->bridge->count + 1);
	char *text = note ? json_dumps(note, JSON_COMPACT) : NULL;

	json_decref(note);
	return text;
}

static void cell_start(struct job *job, struct lair_text code, const char *kind, step *then)
{
	struct bridge *bridge = job->bridge;
	_cleanup_(freep) char *note = note_of(job, kind);
	char key[KEY_SIZE] = "";
	struct lair_exec exec = {
		.session = bridge->session,
		.profile = bridge->profile,
		.settings = (const char *const *)bridge->options->asked->items,
		.code = code,
		.timeout = bridge->options->timeout,
		.unlimited = !(bridge->options->timeout > 0),
		.notebook = note,
		.key = key,
		.on_output = on_output,
		.on_display = on_display,
		.on_ask = message_flag(job->message.content, "allow_stdin", false) ? on_ask : NULL,
		.userdata = job,
	};

	if (!note || text_random(key, KEY_SIZE - 1)) {
		execute_refuse(job, "LairError", "out of memory");
		return;
	}
	outstanding_write(job, key);
	job_wait(job, lair_exec(bridge->lair, &job->call, &exec), then);
}

static bool is_blank(struct lair_text code)
{
	return strspn(code.data, " \t\r\n") == code.size;
}

static void input_show(struct job *job, const char *code, size_t size)
{
	struct lair_text text = {.data = code, .size = size};

	publish(job->bridge,
		(struct outgoing){.type = "execute_input",
				  .content = json_pack("{s:o, s:I}", "code", json_text(text), "execution_count",
						       (json_int_t)job->bridge->count + 1),
				  .parent = job_header(job)});
}

void execute_begin(struct job *job)
{
	const json_t *content = job->message.content, *code = json_object_get(content, "code");
	struct lair_text text = {.data = json_string_value(code), .size = json_string_length(code)};
	bool quiet = message_flag(content, "silent", false);

	job->silent = quiet;
	job->shown = !quiet && message_flag(content, "store_history", true);
	if (job->aborted) {
		job_reply(job, reply_of(job, "aborted"));
		return;
	}
	if (!text.data) {
		execute_refuse(job, "ValueError", "execute_request: expected code");
		return;
	}
	if (!job_lair(job))
		return;
	if (!quiet)
		input_show(job, text.data, text.size);
	if (!quiet)
		holding_tell(job);
	if (is_blank(text))
		expressions_begin(job);
	else if (quiet || !directive_begin(job, text.data))
		cell_start(job, text, job->shown ? "cell" : "silent", cell_done);
}

/* ---- a cell of an earlier kernel ---- */

static void outstanding_begin(struct job *job)
{
	struct bridge *bridge = job->bridge;
	struct lair_attach attach = {
		.session = bridge->session,
		.key = job->name,
		.on_output = on_output,
		.on_display = on_display,
		.on_ask = on_ask,
		.userdata = job,
	};

	/* A client that has seen the beginning gets it again. */
	publish(bridge, (struct outgoing){.type = "clear_output",
					  .content = json_pack("{s:b}", "wait", 1),
					  .parent = job_header(job)});
	job_wait(job, lair_attach(bridge->lair, &job->call, &attach), cell_done);
}

static const struct handler outstanding_handler = {"execute_request", outstanding_begin, false, false, true};

void outstanding_take_up(struct bridge *bridge)
{
	int fd = bridge->outstanding_fd = outstanding_open(bridge, 0);
	json_t *document = fd >= 0 ? json_loadfd(fd, 0, NULL) : NULL;
	json_t *header = json_object_get(document, "header");
	const char *key = message_text(document, "key");
	struct job *job = NULL;

	if (json_is_object(header) && *key)
		job = calloc(1, sizeof(*job));
	if (job) {
		job->name = strdup(key);
		job->message.header = json_incref(header);
		job->message.content = json_object();
		job_add(bridge, job, &outstanding_handler);
	} else {
		outstanding_remove(bridge);
	}
	json_decref(document);
}

/* ---- comms ---- */

/* A message for the session, in the place of code. New. */
static char *message_packed(const struct job *job)
{
	const struct message *message = &job->message;
	json_t *buffers = json_array(), *document;
	char *text;

	for (size_t i = message->buffers; i < job->frames.n; i++)
		json_array_append_new(buffers, json_base64(job->frames.items[i]));
	document = json_pack("{s:s, s:O, s:O, s:o}", "msg_type", message_text(message->header, "msg_type"),
			     "content", message->content, "metadata", message->metadata, "buffers", buffers);
	text = document ? json_dumps(document, JSON_COMPACT) : NULL;
	json_decref(document);
	return text;
}

static void comm_done(struct job *job)
{
	const struct lair_result *result = lair_outcome(job->call) ? NULL : lair_result(job->call);
	json_t *error;

	if (result) {
		result_note(job->bridge, result, false);
		show_notices(job, result);
		error = result_error(job->bridge, result);
		if (error)
			tell_line(job, "%s: %s", message_text(error, "ename"), message_text(error, "evalue"));
		json_decref(error);
	}
	outstanding_remove(job->bridge);
	job_reply(job, json_object());
}

/* As a cell, so that its code is in the cage and can be undone. */
void comm_begin(struct job *job)
{
	_cleanup_(freep) char *text = NULL;

	if (!job->bridge->comms) {
		/* Nobody in the session has ever heard of comms. */
		if (strcmp(job->handler->type, "comm_open") == 0)
			publish(job->bridge,
				(struct outgoing){
					.type = "comm_close",
					.content = json_pack("{s:s, s:{}}", "comm_id",
							     message_text(job->message.content, "comm_id"), "data"),
					.parent = job_header(job)});
		job_reply(job, NULL);
		return;
	}
	if (!job_lair(job))
		return;
	text = message_packed(job);
	cell_start(job, lair_text(text ? text : "{}"), "message", comm_done);
}

static void comm_info_done(struct job *job)
{
	json_t *comms = steal_ptr(&job->told), *of_target;
	const char *target = message_text(job->message.content, "target_name"), *id;
	const struct lair_result *result = lair_outcome(job->call) ? NULL : lair_result(job->call);
	json_t *comm;

	outstanding_remove(job->bridge);
	if (result)
		result_note(job->bridge, result, false);
	of_target = json_object();
	json_object_foreach(comms, id, comm) if (!*target || strcmp(target, message_text(comm, "target_name")) == 0)
		json_object_set(of_target, id, comm);
	json_decref(comms);
	job_reply(job, json_pack("{s:s, s:o}", "status", "ok", "comms", of_target));
}

void comm_info_begin(struct job *job)
{
	if (!job->bridge->comms) {
		job_reply(job, json_pack("{s:s, s:{}}", "status", "ok", "comms"));
		return;
	}
	if (job_lair(job))
		cell_start(job, lair_text("{\"msg_type\": \"comm_info_request\"}"), "message", comm_info_done);
}
