/* The handle: its life, its connection, and its messages. resume.c says what happens to calls when the
 * connection ends. */
#include "handle.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define TIMEOUT_DEFAULT 30.0
/* The largest number of messages, and of bytes, in one lair_process, so that a flood leaves the caller time and
 * room for other things. The last message may be any size. */
#define BATCH 64
#define BATCH_BYTES ((size_t)1 << 20)

int clock_left_ms(double start, double timeout)
{
	double left;

	if (timeout < 0)
		return -1;
	left = ceil((start + timeout - clock_seconds()) * 1e3);
	return left <= 0 ? 0 : (int)fmin(left, 1e9);
}

int lair_fail(struct lair *lair, int error, const char *format, ...)
{
	va_list args;

	lair->setting[0] = '\0';
	va_start(args, format);
	vsnprintf(lair->error, sizeof(lair->error), format, args);
	va_end(args);
	return error;
}

/* ---- life ---- */

/* The path is made absolute, because the daemon works in another directory. */
static int socket_path(char path[static PATH_SIZE], const char *given)
{
	char named[PATH_SIZE], directory[PATH_SIZE] = "";
	int r = 0;

	if (!given) {
		r = path_default_socket(named);
		given = named;
	}
	if (!r && *given != '/' && !getcwd(directory, sizeof(directory)))
		r = -errno;
	if (r)
		return r;
	if (strlen(directory) + strlen(given) + 1 > SOCKET_PATH_MAX)
		return -ENAMETOOLONG;
	sprintf(path, "%s%s%s", directory, *directory ? "/" : "", given);
	return 0;
}

static int options_take(struct lair *lair, const struct lair_options *options)
{
	int r;

	lair->no_start = options->no_start;
	lair->timeout = options->timeout > 0 ? options->timeout : TIMEOUT_DEFAULT;
	lair->batch = options->batch ? options->batch : BATCH_BYTES;
	lair->shown = options->discreet ? "its socket" : lair->socket;
	r = socket_path(lair->socket, options->socket);
	if (!r && options->config) {
		lair->config = strdup(options->config);
		if (!lair->config)
			r = -ENOMEM;
	}
	return r;
}

int lair_new(struct lair **lairp, const struct lair_options *options)
{
	static const struct lair_options defaults;
	struct lair *lair = calloc(1, sizeof(*lair));
	int r;

	if (!lair)
		return -ENOMEM;
	lair->epoll = lair->wake = lair->timer = -1;
	lair->queue = answer_queue_new();
	r = lair->queue ? options_take(lair, options ? options : &defaults) : -ENOMEM;
	if (r)
		lair_free(lair);
	else
		*lairp = lair;
	return r;
}

struct lair *lair_free(struct lair *lair)
{
	if (!lair)
		return NULL;
	resume_stop(lair);
	for (struct lair_call *call; (call = lair->first);) {
		if (!call->own)
			call->on_done = NULL;
		call_end(call, LAIR_E_LOST, BYTES("the handle was freed"));
	}
	transport_close(lair);
	lair->queue = answer_queue_close(lair->queue);
	free(lair->config);
	free(lair);
	return NULL;
}

const char *lair_error(const struct lair *lair)
{
	return lair->error;
}

const char *lair_error_setting(const struct lair *lair)
{
	return lair->setting;
}

const char *lair_socket(const struct lair *lair)
{
	return lair->socket;
}

bool lair_started(const struct lair *lair)
{
	return lair->started;
}

int lair_fd(const struct lair *lair)
{
	return lair->epoll;
}

/* ---- connecting ---- */

static void on_greeted(struct lair_call *call, void *userdata)
{
	const struct lair_daemon *daemon = lair_daemon(call);

	if (daemon)
		handle_greeted(userdata, daemon);
}

/* Before any other request, the process that listens must answer as a daemon of our version. */
static int greet(struct lair *lair, double timeout)
{
	struct lair_call *call = NULL;
	int r;

	r = lair_hello(lair, &call);
	if (!r) {
		/* Right after the answer the connection may end, and is then made again. So the answer is used at
		 * once. */
		lair_on_done(call, on_greeted, lair);
		r = lair_wait(call, timeout);
	}
	if (r == -ETIMEDOUT)
		lair_fail(lair, r, "the process that listens on %s does not answer", lair->shown);
	lair_call_free(call);
	return r;
}

void handle_greeted(struct lair *lair, const struct lair_daemon *daemon)
{
	lair->frame_max = daemon->frame_max;
	snprintf(lair->instance, sizeof(lair->instance), "%.*s", (int)daemon->instance.size, daemon->instance.data);
}

static int handle_connect(struct lair *lair, double timeout)
{
	int r;

	transport_close(lair);
	lair->lost = false;
	lair->frame_max = 0;
	lair->instance[0] = '\0';
	r = transport_open(lair);
	if (!r)
		r = transport_connect(lair, 0);
	if (r)
		lair_fail(lair, r, "cannot connect to %s: %s", lair->shown, zmq_strerror(-r));
	else
		r = greet(lair, timeout);
	if (r)
		transport_close(lair);
	return r;
}

int lair_connect(struct lair *lair)
{
	double start = clock_seconds();
	int r;

	if (lair->epoll >= 0 && !lair->lost)
		return 0;
	lair->started = false;
	r = socket_trust(lair);
	if (!r)
		r = handle_connect(lair, lair->timeout);
	if (r != LAIR_E_LOST && r != LAIR_E_NO_DAEMON)
		return r;
	/* Probe only if nobody has answered: it makes one connection more. */
	r = socket_probe(lair);
	if (r == LAIR_E_NO_DAEMON && !lair->no_start)
		r = daemon_start(lair, lair->timeout);
	return r ? r : handle_connect(lair, fmax(0.0, start + lair->timeout - clock_seconds()));
}

/* ---- traffic ---- */

int handle_send(struct lair *lair, const struct lair_call *call)
{
	if (lair->epoll < 0 || lair->lost)
		return lair_fail(lair, LAIR_E_LOST, "not connected to %s", lair->shown);
	if (lair->frame_max && call->request.size > lair->frame_max)
		return lair_fail(lair, LAIR_E_TOO_LARGE,
				 "the request has %zu bytes; frame_size = %llu is the limit", call->request.size,
				 (unsigned long long)lair->frame_max);
	/* While the connection is made again, requests wait until the daemon has been greeted. */
	if (lair->resuming && call->reply != &hello_reply_schema)
		return 0;
	if (zmq_send(lair->dealer, call->request.data, call->request.size, ZMQ_DONTWAIT) < 0)
		return lair_fail(lair, -errno, "cannot send to %s: %s", lair->shown, zmq_strerror(errno));
	/* To send may take away the sign that a message can be read. */
	if (transport_readable(lair))
		transport_wake(lair);
	return 0;
}

/* Returns true when nothing is left to read. */
static bool dealer_drain(struct lair *lair, unsigned batch, size_t most)
{
	size_t size = 0;

	for (unsigned i = 0; i < batch && size < most; i++) {
		zmq_msg_t message;

		zmq_msg_init(&message);
		if (zmq_msg_recv(&message, lair->dealer, ZMQ_DONTWAIT) < 0) {
			zmq_msg_close(&message);
			return errno == EAGAIN;
		}
		size += zmq_msg_size(&message);
		call_dispatch(lair, &message);
	}
	return false;
}

/* Waits at most @timeout_ms for an event, and handles it. */
static int handle_turn(struct lair *lair, int timeout_ms)
{
	int sources, readable = 1 << SOURCE_WAKE | 1 << SOURCE_DEALER;
	bool ended;

	if (lair->epoll < 0 || lair->lost)
		return lair_fail(lair, LAIR_E_LOST, "not connected to %s", lair->shown);
	answer_queue_flush(lair);
	sources = transport_wait(lair, timeout_ms);
	if (sources < 0)
		return lair_fail(lair, sources, "%s", strerror(-sources));
	ended = lair->monitor && (sources & 1 << SOURCE_MONITOR) && transport_ended(lair);
	/* Messages that came before the end still count. */
	if (lair->dealer && ended)
		(void)dealer_drain(lair, UINT32_MAX, SIZE_MAX);
	else if (lair->dealer && (sources & readable) && !dealer_drain(lair, BATCH, lair->batch))
		transport_wake(lair);
	if (ended)
		resume_begin(lair);
	else if (sources & 1 << SOURCE_TIMER)
		resume_on_timer(lair);
	answer_queue_flush(lair);
	return 0;
}

int lair_process(struct lair *lair)
{
	int r = handle_turn(lair, 0);

	if (!r && lair->lost)
		r = lair_fail(lair, LAIR_E_LOST, "the daemon on %s is gone", lair->shown);
	return r;
}

int lair_wait(struct lair_call *call, double timeout)
{
	double start = clock_seconds();
	struct lair *lair = call->lair;

	while (call->outcome == -EINPROGRESS) {
		int left = clock_left_ms(start, timeout);
		int r = handle_turn(lair, left);

		if (r)
			return r;
		if (left == 0 && call->outcome == -EINPROGRESS)
			return lair_fail(lair, -ETIMEDOUT, "no answer from %s within %g seconds", lair->shown,
					 timeout);
	}
	if (call->outcome && lair && call->error) {
		lair_fail(lair, call->outcome, "%s", call->error);
		snprintf(lair->setting, sizeof(lair->setting), "%s", lair_call_setting(call));
	}
	return call->outcome;
}
