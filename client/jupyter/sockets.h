/* The five sockets of a kernel, as its connection file names them. */
#pragma once

#include "message.h"

enum channel { CHANNEL_CONTROL, CHANNEL_SHELL, CHANNEL_STDIN, CHANNEL_IOPUB, CHANNEL_HEARTBEAT, N_CHANNELS };

struct sockets {
	void *context, *channels[N_CHANNELS];
};

/* Opens what @connection, the object in the file, says. Returns 0 or -errno. *whyp: which socket, static. */
int sockets_open(struct sockets *sockets, const json_t *connection, const char **whyp);
/* Queued messages have a second to leave. */
void sockets_close(struct sockets *sockets);

/* The descriptor to watch, and whether a message can be read. The descriptor reports changes alone, and any use of
 * the socket may take the change away. */
int sockets_fd(const struct sockets *sockets, enum channel channel);
bool sockets_readable(const struct sockets *sockets, enum channel channel);

/* The next message, if there is one. Returns 0; -EAGAIN: none has come; -E2BIG: one has, and was too large. */
int sockets_receive(const struct sockets *sockets, enum channel channel, struct frames *frames);
/* One frame. Returns 0 or -errno. -EAGAIN is for the first frame of a message alone: on iopub, that a client has
 * not read for long; elsewhere, that its client is gone, which is not an error. */
int sockets_send(const struct sockets *sockets, enum channel channel, struct lair_text frame, bool more);
/* Whether iopub waits for clients that do not read, which it does at first. If not, they miss messages. */
int sockets_wait_for_all(const struct sockets *sockets, bool wait);
/* Whether this ZeroMQ can encrypt. */
bool sockets_have_curve(void);
/* Answers the heartbeats that have come. */
void sockets_beat(const struct sockets *sockets);
