/* The router's end of one interpreter: its exec channel and the two pipes that carry its output. Every byte that
 * comes in here was written by hostile code. */
#pragma once

#include "event.h"

#include "proto/frame.h"
#include "proto/message.h"

#define INTERPRETER_FRAME_MAX (16U << 20)

struct session;

enum interpreter_stream { STREAM_STDOUT, STREAM_STDERR };

struct interpreter {
	uint64_t serial;
	struct session *session; /* who is told; NULL while it is a spare */
	struct event_loop *loop;
	int channel, pipes[2];
	struct event_source channel_source, pipe_sources[2];
	struct frame_reader reader;
	struct frame_writer writer;
	bool paused;
};

/* Makes the descriptors. @theirs receives the interpreter's ends (channel, stdout, stderr), the caller's to send
 * and close. Returns 0 or -errno. */
int interpreter_new(struct interpreter **interpreterp, struct event_loop *loop, uint64_t serial, int theirs[3]);
struct interpreter *interpreter_free(struct interpreter *interpreter);

/* Give it to a session: from now on session_on_* are called. Returns 0 or -errno. */
int interpreter_attach(struct interpreter *interpreter, struct session *session);

/* Send, or queue what does not fit. Returns 0 or -errno; a closed channel is no error here, it is told by an event.
 */
int interpreter_send(struct interpreter *interpreter, const struct wire_schema *schema, const void *message);

/* Take from both pipes what they hold at this moment. What is written meanwhile waits: no writer can keep us here.
 */
void interpreter_drain(struct interpreter *interpreter);

/* Handle the frames that have arrived: after its death, nothing else will announce them. */
void interpreter_drain_channel(struct interpreter *interpreter);

/* Stop and resume reading output, so that its writer blocks instead of us buffering. */
void interpreter_pause(struct interpreter *interpreter, bool paused);
