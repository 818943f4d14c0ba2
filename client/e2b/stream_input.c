/* StreamInput: what goes into a command, in messages that the client sends one after the other. */
#include "processes.h"

#include <stdlib.h>

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
	if (data && !process_input(process, data)) {
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
