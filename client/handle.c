/* The handle: one DEALER socket, a monitor that tells when its connection has ended, and one descriptor to poll for
 * both. ZeroMQ's own descriptors report changes only, so that descriptor is an epoll set which also holds an
 * eventfd: it is signalled whenever something was left unread. A connection that ends is not made again behind the
 * caller's back, since the daemon would not know the new one: every call ends with LAIR_E_LOST, in handle_lose,
 * which is the one place that knows what was on its way. No heartbeats: over a local socket the kernel tells of a
 * death. */
#include "handle.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#define TIMEOUT_DEFAULT 30.0
#define HANDSHAKE_MS 10000
/* Never, in effect. Telling ZeroMQ so with -1 would have it drop what came just before the end. */
#define RECONNECT_MS (24 * 3600 * 1000)
/* At most so many messages in one lair_process, so that a flood leaves the caller time for other things. */
#define BATCH 64

enum source { SOURCE_DEALER, SOURCE_MONITOR, SOURCE_WAKE };

double clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int clock_left_ms(double start, double timeout)
{
	double left;

	if (timeout < 0)
		return -1;
	left = ceil((start + timeout - clock_now()) * 1e3);
	return left <= 0 ? 0 : (int)fmin(left, 1e9);
}

int lair_fail(struct lair *lair, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(lair->error, sizeof(lair->error), format, args);
	va_end(args);
	return error;
}

/* ---- life ---- */

/* Absolute, since the daemon lives in another directory. */
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
	lair->epoll = lair->wake = -1;
	r = options_take(lair, options ? options : &defaults);
	if (r)
		lair_free(lair);
	else
		*lairp = lair;
	return r;
}

static void transport_close(struct lair *lair)
{
	lair->epoll = fd_close(lair->epoll);
	lair->wake = fd_close(lair->wake);
	/* First, or an event that comes while it closes is leaked. */
	if (lair->monitor)
		(void)zmq_socket_monitor(lair->dealer, NULL, 0);
	if (lair->monitor)
		zmq_close(lair->monitor);
	if (lair->dealer)
		zmq_close(lair->dealer);
	if (lair->context)
		zmq_ctx_term(lair->context);
	lair->monitor = lair->dealer = lair->context = NULL;
}

struct lair *lair_free(struct lair *lair)
{
	if (!lair)
		return NULL;
	for (struct lair_call *call; (call = lair->first);) {
		call->on_done = NULL;
		call_end(call, LAIR_E_LOST, BYTES("the handle was freed"));
	}
	transport_close(lair);
	free(lair->config);
	free(lair);
	return NULL;
}

const char *lair_error(const struct lair *lair)
{
	return lair->error;
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

static int socket_option(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int watch(struct lair *lair, int fd, enum source source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};

	return epoll_ctl(lair->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int watch_socket(struct lair *lair, void *socket, enum source source)
{
	size_t size = sizeof(int);
	int fd;

	if (zmq_getsockopt(socket, ZMQ_FD, &fd, &size) < 0)
		return -errno;
	return watch(lair, fd, source);
}

static int monitor_open(struct lair *lair)
{
	static const char address[] = "inproc://monitor";
	int events = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
		     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

	if (zmq_socket_monitor(lair->dealer, address, events) < 0)
		return -errno;
	lair->monitor = zmq_socket(lair->context, ZMQ_PAIR);
	if (!lair->monitor || zmq_connect(lair->monitor, address) < 0)
		return -errno;
	return socket_option(lair->monitor, ZMQ_LINGER, 0);
}

static int dealer_open(struct lair *lair)
{
	static const struct {
		int option, value;
	} options[] = {
		{ZMQ_LINGER, 0},
		{ZMQ_RECONNECT_IVL, RECONNECT_MS},
		{ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
	};
	int r = 0;

	lair->dealer = zmq_socket(lair->context, ZMQ_DEALER);
	if (!lair->dealer)
		return -errno;
	for (size_t i = 0; !r && i < ARRAY_SIZE(options); i++)
		r = socket_option(lair->dealer, options[i].option, options[i].value);
	return r;
}

/* Every event we asked for means the end; only that there was one matters. */
static bool monitor_drain(struct lair *lair)
{
	bool ended = false;
	zmq_msg_t message;

	zmq_msg_init(&message);
	while (zmq_msg_recv(&message, lair->monitor, ZMQ_DONTWAIT) >= 0)
		ended = true;
	zmq_msg_close(&message);
	return ended;
}

static int transport_open(struct lair *lair)
{
	char endpoint[PATH_SIZE + 8];
	int r;

	lair->context = zmq_ctx_new();
	lair->epoll = epoll_create1(EPOLL_CLOEXEC);
	lair->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!lair->context || lair->epoll < 0 || lair->wake < 0)
		return -errno;
	r = dealer_open(lair);
	if (!r)
		r = monitor_open(lair);
	if (!r)
		r = watch_socket(lair, lair->dealer, SOURCE_DEALER);
	/* Notice is given only of what comes after somebody looked. */
	if (!r)
		(void)monitor_drain(lair);
	if (!r)
		r = watch_socket(lair, lair->monitor, SOURCE_MONITOR);
	if (!r)
		r = watch(lair, lair->wake, SOURCE_WAKE);
	if (r)
		return r;
	snprintf(endpoint, sizeof(endpoint), "ipc://%s", lair->socket);
	return zmq_connect(lair->dealer, endpoint) < 0 ? -errno : 0;
}

/* Whoever listens must answer as a daemon of our version before anything else is asked of it. */
static int greet(struct lair *lair, double timeout)
{
	struct lair_call *call = NULL;
	int r;

	r = lair_hello(lair, &call);
	if (!r)
		r = lair_wait(call, timeout);
	if (!r)
		lair->frame_max = lair_daemon(call)->frame_max;
	else if (r == -ETIMEDOUT)
		lair_fail(lair, r, "what listens on %s does not answer", lair->socket);
	lair_call_free(call);
	return r;
}

static int transport_connect(struct lair *lair, double timeout)
{
	int r;

	transport_close(lair);
	lair->lost = false;
	lair->frame_max = 0;
	r = transport_open(lair);
	if (r)
		lair_fail(lair, r, "cannot connect to %s: %s", lair->socket, zmq_strerror(-r));
	else
		r = greet(lair, timeout);
	if (r)
		transport_close(lair);
	return r;
}

int lair_connect(struct lair *lair)
{
	double start = clock_now();
	int r;

	if (lair->dealer && !lair->lost)
		return 0;
	lair->started = false;
	r = socket_trust(lair);
	if (!r)
		r = transport_connect(lair, lair->timeout);
	if (r != LAIR_E_LOST && r != LAIR_E_NO_DAEMON)
		return r;
	/* Only who has found nobody looks closer: to a daemon that runs, a look is a connection too many. */
	r = socket_probe(lair);
	if (r == LAIR_E_NO_DAEMON && !lair->no_start)
		r = daemon_start(lair, lair->timeout);
	return r ? r : transport_connect(lair, fmax(0.0, start + lair->timeout - clock_now()));
}

/* ---- traffic ---- */

static void handle_lose(struct lair *lair)
{
	char sentence[PATH_SIZE + 64];

	lair->lost = true;
	snprintf(sentence, sizeof(sentence), "the daemon on %s is gone", lair->socket);
	/* Those that callbacks start meanwhile are refused, so this ends. */
	while (lair->first)
		call_end(lair->first, LAIR_E_LOST, bytes_of(sentence));
}

static void wake(struct lair *lair)
{
	uint64_t one = 1;
	ssize_t n = write(lair->wake, &one, sizeof(one));

	/* It can only fail by being full, which is as good. */
	(void)n;
}

static bool dealer_readable(const struct lair *lair)
{
	size_t size = sizeof(int);
	int events = 0;

	return zmq_getsockopt(lair->dealer, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN);
}

int handle_send(struct lair *lair, const struct wire_schema *schema, const void *request)
{
	msgpack_sbuffer buffer;
	int r;

	if (!lair->dealer || lair->lost)
		return lair_fail(lair, LAIR_E_LOST, "not connected to %s", lair->socket);
	msgpack_sbuffer_init(&buffer);
	r = wire_encode(&buffer, schema, request);
	if (r)
		lair_fail(lair, r, "%s", strerror(-r));
	else if (lair->frame_max && buffer.size > lair->frame_max)
		r = lair_fail(lair, LAIR_E_TOO_LARGE, "the request has %zu bytes; frame_size = %llu is the limit",
			      buffer.size, (unsigned long long)lair->frame_max);
	else if (zmq_send(lair->dealer, buffer.data, buffer.size, ZMQ_DONTWAIT) < 0)
		r = lair_fail(lair, -errno, "cannot send to %s: %s", lair->socket, zmq_strerror(errno));
	/* Sending may have taken the notice that something is there to be read. */
	else if (dealer_readable(lair))
		wake(lair);
	msgpack_sbuffer_destroy(&buffer);
	return r;
}

/* Returns true when nothing is left to read. */
static bool dealer_drain(struct lair *lair, unsigned batch)
{
	for (unsigned i = 0; i < batch; i++) {
		zmq_msg_t message;

		zmq_msg_init(&message);
		if (zmq_msg_recv(&message, lair->dealer, ZMQ_DONTWAIT) < 0) {
			zmq_msg_close(&message);
			return errno == EAGAIN;
		}
		call_dispatch(lair, &message);
	}
	return false;
}

static void wake_clear(struct lair *lair)
{
	uint64_t count;
	ssize_t n = read(lair->wake, &count, sizeof(count));

	(void)n;
}

/* Wait at most @timeout_ms for something, and take it in. */
static int handle_turn(struct lair *lair, int timeout_ms)
{
	bool readable = false, ended = false;
	struct epoll_event events[3];
	int n;

	if (!lair->dealer || lair->lost)
		return lair_fail(lair, LAIR_E_LOST, "not connected to %s", lair->socket);
	n = epoll_wait(lair->epoll, events, ARRAY_SIZE(events), timeout_ms);
	if (n < 0)
		return lair_fail(lair, -errno, "%s", strerror(errno));
	for (int i = 0; i < n; i++) {
		switch ((enum source)events[i].data.u32) {
		case SOURCE_WAKE:
			wake_clear(lair);
			readable = true;
			break;
		case SOURCE_DEALER:
			readable = true;
			break;
		case SOURCE_MONITOR:
			ended = monitor_drain(lair);
			break;
		}
	}
	/* What came before the end still counts. */
	if (ended)
		(void)dealer_drain(lair, UINT32_MAX);
	else if (readable && !dealer_drain(lair, BATCH))
		wake(lair);
	if (ended)
		handle_lose(lair);
	return 0;
}

int lair_process(struct lair *lair)
{
	int r = handle_turn(lair, 0);

	if (!r && lair->lost)
		r = lair_fail(lair, LAIR_E_LOST, "the daemon on %s is gone", lair->socket);
	return r;
}

int lair_wait(struct lair_call *call, double timeout)
{
	double start = clock_now();
	struct lair *lair = call->lair;

	while (call->outcome == -EINPROGRESS) {
		int left = clock_left_ms(start, timeout);
		int r = handle_turn(lair, left);

		if (r)
			return r;
		if (left == 0 && call->outcome == -EINPROGRESS)
			return lair_fail(lair, -ETIMEDOUT, "no answer from %s within %g seconds", lair->socket,
					 timeout);
	}
	if (call->outcome && lair && call->error)
		lair_fail(lair, call->outcome, "%s", call->error);
	return call->outcome;
}
