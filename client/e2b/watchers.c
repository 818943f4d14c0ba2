/* Watchers of directories: those that stream what they see, and those that are asked for it. */
#include "processes.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define EVENTS_MAX 10000
#define WATCH_LINE_MAX ((size_t)64 << 10)

static void events_answer(struct process *process, struct exchange *exchange)
{
	answer_json(exchange, 200, json_pack("{s:o}", "events", process->events));
	process->events = json_array();
}

/* All that came before the look was asked for has been told. */
static void looked(struct process *process, uint64_t look)
{
	for (struct stream *stream = process->streams, *next; stream; stream = next) {
		next = stream->next;
		if (!stream->looks || stream->looks > look)
			continue;
		stream_leave(stream);
		events_answer(process, stream->exchange);
	}
}

static void watch_said(struct process *process, const json_t *said)
{
	const char *failed = json_string_value(json_object_get(said, "failed"));
	json_t *told;

	if (failed) {
		process->report = json_deep_copy(said);
	} else if (json_object_get(said, "watching")) {
		process->watching = true;
		if (process->events && process->streams) {
			/* The client that asked for the watcher gets its name. */
			struct stream *asker = process->streams;

			stream_leave(asker);
			answer_json(asker->exchange, 200, json_pack("{s:s}", "watcherId", process->tag));
		}
		process_tell(process, json_pack("{s:{}}", "start"));
	} else if (json_object_get(said, "looked")) {
		looked(process, (uint64_t)json_integer_value(json_object_get(said, "looked")));
	} else {
		told = json_pack("{s:O, s:O, s:O*}", "name", json_object_get(said, "name"), "type",
				 json_object_get(said, "type"), "entry", json_object_get(said, "entry"));
		if (process->events && json_array_size(process->events) < EVENTS_MAX)
			json_array_append(process->events, told);
		process_tell(process, json_pack("{s:o}", "filesystem", told));
	}
}

void watch_output(struct process *process, struct lair_text data)
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
	given = json_pack("{s:s, s:b, s:b}", "path", path ? path : "", "recursive",
			  json_is_true(json_object_get(stream->work.asked, "recursive")), "entry",
			  json_is_true(json_object_get(stream->work.asked, "includeEntry")));
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
	if (process_room(exchange))
		sandbox_branch(exchange, purpose, then);
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
	struct stream *stream = exchange->state;
	struct process *process = watcher_asked(exchange);

	stream->exchange = exchange;
	stream->work.finish = stream_finish;
	if (!process)
		return;
	if (!process_order(process, json_pack("{s:I}", "look", (json_int_t)process->looks + 1))) {
		events_answer(process, exchange);
		return;
	}
	stream->looks = ++process->looks;
	stream_join(stream, process);
}

void watcher_events_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct stream), watcher_events_found);
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
