/* The connection: one DEALER socket, a monitor that tells when it has ended, and one descriptor for
 * both. ZeroMQ's own descriptors report changes only. So ours is an epoll set that also holds a timer and an
 * eventfd, which is signalled whenever something was left unread. The set outlives its connections: a program
 * that polls it need not know of a new one. ZeroMQ does not reconnect by itself, since the daemon would not know
 * the new connection. No heartbeats: over a local socket the kernel tells of a death. */
#include "handle.h"

#include <math.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#define HANDSHAKE_MS 10000
/* So long that it never happens. If it were -1, ZeroMQ would drop the messages that came just before the end. */
#define RECONNECT_MS (24 * 3600 * 1000)
#define SEND_QUEUE 1000
/* So many unread messages are kept here, and the others in the daemon; output comes in pieces of 64 KiB. */
#define RECEIVE_QUEUE 128
/* More than a connection needs. */
#define DESCRIPTORS 16

static int socket_option(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int watch(struct lair *lair, int fd, enum source source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};

	return epoll_ctl(lair->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int socket_fd(void *socket)
{
	size_t size = sizeof(int);
	int fd = -1;

	return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) < 0 ? -errno : fd;
}

static int watch_socket(struct lair *lair, void *socket, enum source source)
{
	int fd = socket_fd(socket);

	return fd < 0 ? fd : watch(lair, fd, source);
}

static void *socket_close(struct lair *lair, void *socket)
{
	if (socket) {
		(void)epoll_ctl(lair->epoll, EPOLL_CTL_DEL, socket_fd(socket), NULL);
		zmq_close(socket);
	}
	return NULL;
}

void transport_disconnect(struct lair *lair)
{
	/* The monitor stops first, because an event that comes while it closes would be leaked. */
	if (lair->monitor)
		(void)zmq_socket_monitor(lair->dealer, NULL, 0);
	lair->monitor = socket_close(lair, lair->monitor);
	lair->dealer = socket_close(lair, lair->dealer);
}

void transport_close(struct lair *lair)
{
	transport_disconnect(lair);
	answer_queue_watch(lair->queue, -1);
	lair->epoll = fd_close(lair->epoll);
	lair->wake = fd_close(lair->wake);
	lair->timer = fd_close(lair->timer);
	if (lair->context)
		zmq_ctx_term(lair->context);
	lair->context = NULL;
}

/* If ZeroMQ cannot get a descriptor, it aborts the process. So first see whether there are enough. */
static int descriptors_look(void)
{
	int fds[DESCRIPTORS], n = 0, r = 0;

	while (!r && n < DESCRIPTORS) {
		fds[n] = eventfd(0, EFD_CLOEXEC);
		if (fds[n] < 0)
			r = -errno;
		else
			n++;
	}
	while (n > 0)
		(void)close(fds[--n]);
	return r;
}

int transport_open(struct lair *lair)
{
	int r = descriptors_look();

	if (r)
		return r;
	lair->context = zmq_ctx_new();
	lair->epoll = epoll_create1(EPOLL_CLOEXEC);
	lair->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lair->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!lair->context || lair->epoll < 0 || lair->wake < 0 || lair->timer < 0)
		return -errno;
	answer_queue_watch(lair->queue, lair->wake);
	r = watch(lair, lair->wake, SOURCE_WAKE);
	return r ? r : watch(lair, lair->timer, SOURCE_TIMER);
}

/* Each monitor has an address of its own, because the last one may still be in use. */
static int monitor_open(struct lair *lair)
{
	int events = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
		     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
	char address[64];

	snprintf(address, sizeof(address), "inproc://monitor-%u", ++lair->n_connections);
	if (zmq_socket_monitor(lair->dealer, address, events) < 0)
		return -errno;
	lair->monitor = zmq_socket(lair->context, ZMQ_PAIR);
	if (!lair->monitor || zmq_connect(lair->monitor, address) < 0)
		return -errno;
	return socket_option(lair->monitor, ZMQ_LINGER, 0);
}

static int dealer_open(struct lair *lair, unsigned n_waiting)
{
	const struct {
		int option, value;
	} options[] = {
		{ZMQ_LINGER, 0},
		{ZMQ_RECONNECT_IVL, RECONNECT_MS},
		{ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
		{ZMQ_RCVHWM, RECEIVE_QUEUE},
		{ZMQ_SNDHWM, (int)MIN(n_waiting, 1U << 30) + SEND_QUEUE},
	};
	int r = 0;

	lair->dealer = zmq_socket(lair->context, ZMQ_DEALER);
	if (!lair->dealer)
		return -errno;
	for (size_t i = 0; !r && i < ARRAY_SIZE(options); i++)
		r = socket_option(lair->dealer, options[i].option, options[i].value);
	return r;
}

/* Every event that the monitor tells means the end of the connection. */
bool transport_ended(struct lair *lair)
{
	bool ended = false;
	zmq_msg_t message;

	zmq_msg_init(&message);
	while (zmq_msg_recv(&message, lair->monitor, ZMQ_DONTWAIT) >= 0)
		ended = true;
	zmq_msg_close(&message);
	return ended;
}

int transport_connect(struct lair *lair, unsigned n_waiting)
{
	char endpoint[PATH_SIZE + 8];
	int r;

	transport_disconnect(lair);
	r = dealer_open(lair, n_waiting);
	if (!r)
		r = monitor_open(lair);
	if (!r)
		r = watch_socket(lair, lair->dealer, SOURCE_DEALER);
	/* ZeroMQ reports an event only after a first look. */
	if (!r)
		(void)transport_ended(lair);
	if (!r)
		r = watch_socket(lair, lair->monitor, SOURCE_MONITOR);
	if (r)
		return r;
	snprintf(endpoint, sizeof(endpoint), "ipc://%s", lair->socket);
	return zmq_connect(lair->dealer, endpoint) < 0 ? -errno : 0;
}

bool transport_readable(const struct lair *lair)
{
	size_t size = sizeof(int);
	int events = 0;

	return zmq_getsockopt(lair->dealer, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN);
}

void transport_wake(struct lair *lair)
{
	uint64_t one = 1;
	ssize_t n = write(lair->wake, &one, sizeof(one));

	/* It fails only if the counter is full, and then the handle wakes, too. */
	(void)n;
}

void transport_wake_after(struct lair *lair, double seconds)
{
	struct itimerspec when = {.it_value = {.tv_sec = (time_t)seconds}};

	when.it_value.tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
	(void)timerfd_settime(lair->timer, 0, &when, NULL);
}

/* The sources that have become readable, as a set; negative: -errno. */
int transport_wait(struct lair *lair, int timeout_ms)
{
	struct epoll_event events[4];
	int n = epoll_wait(lair->epoll, events, ARRAY_SIZE(events), timeout_ms), sources = 0;
	uint64_t count;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		sources |= 1 << events[i].data.u32;
		if (events[i].data.u32 == SOURCE_WAKE || events[i].data.u32 == SOURCE_TIMER) {
			ssize_t size = read(events[i].data.u32 == SOURCE_WAKE ? lair->wake : lair->timer, &count,
					    sizeof(count));

			(void)size;
		}
	}
	return sources;
}
