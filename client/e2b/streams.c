/* Streams that listen to a command or a watcher: they come and go, have deadlines and are kept alive. */
#include "processes.h"

#include <math.h>
#include <stdlib.h>

static void stream_tell(struct stream *stream, const json_t *message)
{
	if (!connect_send(stream->exchange, json_deep_copy(message)))
		stream_break(stream->exchange);
}

void process_tell(struct process *process, json_t *message)
{
	for (struct stream *stream = process->streams; stream; stream = stream->next)
		if (!stream->looks)
			stream_tell(stream, message);
	json_decref(message);
}

json_t *process_event(const char *name, json_t *value)
{
	return json_pack("{s:{s:o}}", "event", name, value);
}

void streams_end(struct process *process, const char *code, const char *message)
{
	for (struct stream *stream; (stream = process->streams);) {
		process->streams = stream->next;
		stream->process = NULL;
		exchange_alarm(stream->exchange, 0, NULL);
		if (code && strcmp(code, "lost") == 0)
			stream_break(stream->exchange);
		else if (stream->looks)
			connect_fail(stream->exchange, "not_found", "watcher not found");
		else
			connect_end(stream->exchange, code, message);
	}
}

void stream_leave(struct stream *stream)
{
	struct stream **at = stream->process ? &stream->process->streams : NULL;

	while (at && *at && *at != stream)
		at = &(*at)->next;
	if (at && *at)
		*at = stream->next;
	stream->process = NULL;
}

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
		connect_send(exchange, process_event("keepalive", json_object()));
	alarm_next(stream);
}

static void on_gone(struct exchange *exchange)
{
	struct stream *stream = exchange->state;
	struct process *process = stream->process;

	stream_leave(stream);
	/* A command runs on, and may get listeners again; a watcher cannot. */
	if (process && process->watches && !process->events)
		process_kill(process);
}

void stream_finish(struct work *work)
{
	struct stream *stream = (struct stream *)work;

	stream_leave(stream);
	envelope_deinit(&stream->envelope);
}

bool stream_opens(struct exchange *exchange)
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

void stream_join(struct stream *stream, struct process *process)
{
	/* A client that reads slowly holds up what it listens to. */
	if (!stream->exchange->flow) {
		stream->exchange->flow = process->flow;
		process->flow->n_users++;
	}
	stream->process = process;
	stream->next = process->streams;
	process->streams = stream;
}
