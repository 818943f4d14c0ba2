/* ZeroMQ does the work. iopub is an XPUB: it hears who subscribes. */
#include "sockets.h"

#include <stdio.h>
#include <zmq.h>

#define LINGER_MS 1000
/* So many messages wait for a client that does not read; output comes in pieces of 64 KiB. Later messages wait in
 * the bridge, which reads no more from the daemon. */
#define QUEUE 64
/* As many replies as there may be requests. */
#define REPLIES 4096
#define ENDPOINT_SIZE 320

static const struct {
	const char *port, *name;
	int type;
} kinds[N_CHANNELS] = {
	[CHANNEL_CONTROL] = {"control_port", "control", ZMQ_ROUTER},
	[CHANNEL_SHELL] = {"shell_port", "shell", ZMQ_ROUTER},
	[CHANNEL_STDIN] = {"stdin_port", "stdin", ZMQ_ROUTER},
	[CHANNEL_IOPUB] = {"iopub_port", "iopub", ZMQ_XPUB},
	[CHANNEL_HEARTBEAT] = {"hb_port", "heartbeat", ZMQ_REP},
};

static int endpoint_make(char out[static ENDPOINT_SIZE], const json_t *connection, const char *port)
{
	const char *transport = message_text(connection, "transport"), *ip = message_text(connection, "ip");
	const json_t *number = json_object_get(connection, port);
	bool ipc = strcmp(transport, "ipc") == 0;
	int n;

	if (!*ip || !json_is_integer(number) || (*transport && !ipc && strcmp(transport, "tcp") != 0))
		return -EINVAL;
	n = snprintf(out, ENDPOINT_SIZE, ipc ? "ipc://%s-%d" : "tcp://%s:%d", ip, (int)json_integer_value(number));
	return n < ENDPOINT_SIZE ? 0 : -ENAMETOOLONG;
}

static int set(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* With keys in the connection file, only who has read it can connect, and nobody else can listen. */
static int curve_set(void *socket, const json_t *connection)
{
	const json_t *key = json_object_get(connection, "curve_secretkey");
	const char *text = json_string_value(key);

	if (!key && !json_object_get(connection, "curve_publickey"))
		return 0;
	/* 40 characters are 32 bytes. */
	if (!text || strlen(text) != 40 || !sockets_have_curve())
		return -EKEYREJECTED;
	if (zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, text, 41) < 0)
		return -EKEYREJECTED;
	return set(socket, ZMQ_CURVE_SERVER, 1);
}

static int options_set(void *socket, enum channel channel, const json_t *connection)
{
	int64_t largest = MESSAGE_SIZE_MAX;
	int r = set(socket, ZMQ_LINGER, LINGER_MS);

	if (!r && zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof(largest)) < 0)
		r = -errno;
	if (!r)
		r = set(socket, ZMQ_SNDHWM, channel == CHANNEL_IOPUB ? QUEUE : REPLIES);
	if (!r)
		r = curve_set(socket, connection);
	/* A client that connects again under its name gets the messages to that name. */
	if (!r && kinds[channel].type == ZMQ_ROUTER)
		r = set(socket, ZMQ_ROUTER_HANDOVER, 1);
	if (!r && channel == CHANNEL_IOPUB)
		r = set(socket, ZMQ_XPUB_VERBOSE, 1);
	if (!r && channel == CHANNEL_IOPUB)
		r = set(socket, ZMQ_XPUB_NODROP, 1);
	return r;
}

static int channel_open(struct sockets *sockets, enum channel channel, const json_t *connection)
{
	char endpoint[ENDPOINT_SIZE];
	void *socket;
	int r = endpoint_make(endpoint, connection, kinds[channel].port);

	if (r)
		return r;
	socket = sockets->channels[channel] = zmq_socket(sockets->context, kinds[channel].type);
	if (!socket)
		return -errno;
	r = options_set(socket, channel, connection);
	return !r && zmq_bind(socket, endpoint) < 0 ? -errno : r;
}

int sockets_open(struct sockets *sockets, const json_t *connection, const char **whyp)
{
	int r = 0;

	*sockets = (struct sockets){.context = zmq_ctx_new()};
	*whyp = "ZeroMQ";
	if (!sockets->context)
		return -ENOMEM;
	for (size_t i = 0; !r && i < N_CHANNELS; i++) {
		*whyp = kinds[i].name;
		r = channel_open(sockets, (enum channel)i, connection);
	}
	return r;
}

void sockets_close(struct sockets *sockets)
{
	for (size_t i = 0; i < N_CHANNELS; i++)
		if (sockets->channels[i])
			(void)zmq_close(sockets->channels[i]);
	if (sockets->context)
		while (zmq_ctx_term(sockets->context) < 0 && errno == EINTR)
			;
	*sockets = (struct sockets){.context = NULL};
}

static int get(void *socket, int option)
{
	size_t size = sizeof(int);
	int value = -1;

	return zmq_getsockopt(socket, option, &value, &size) < 0 ? -errno : value;
}

int sockets_fd(const struct sockets *sockets, enum channel channel)
{
	return get(sockets->channels[channel], ZMQ_FD);
}

bool sockets_readable(const struct sockets *sockets, enum channel channel)
{
	int events = get(sockets->channels[channel], ZMQ_EVENTS);

	return events > 0 && (events & ZMQ_POLLIN);
}

int sockets_receive(const struct sockets *sockets, enum channel channel, struct frames *frames)
{
	void *socket = sockets->channels[channel];
	bool more = true;
	zmq_msg_t part;
	int r = 0;

	while (more) {
		(void)zmq_msg_init(&part);
		if (zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) < 0)
			return -EAGAIN;
		if (!r)
			r = frames_add(frames, zmq_msg_data(&part), zmq_msg_size(&part));
		more = zmq_msg_more(&part);
		(void)zmq_msg_close(&part);
	}
	return r ? -E2BIG : 0;
}

int sockets_send(const struct sockets *sockets, enum channel channel, struct lair_text frame, bool more)
{
	int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);

	return zmq_send(sockets->channels[channel], frame.data, frame.size, flags) < 0 ? -errno : 0;
}

int sockets_wait_for_all(const struct sockets *sockets, bool wait)
{
	return set(sockets->channels[CHANNEL_IOPUB], ZMQ_XPUB_NODROP, wait);
}

bool sockets_have_curve(void)
{
	return zmq_has("curve") > 0;
}

void sockets_beat(const struct sockets *sockets)
{
	struct frames frames = {.items = NULL};

	while (sockets_receive(sockets, CHANNEL_HEARTBEAT, &frames) != -EAGAIN) {
		for (size_t i = 0; i < frames.n; i++)
			(void)sockets_send(sockets, CHANNEL_HEARTBEAT, frames.items[i], i + 1 < frames.n);
		if (frames.n == 0)
			(void)sockets_send(sockets, CHANNEL_HEARTBEAT, lair_text(""), false);
		frames_deinit(&frames);
	}
}
