/* The table of connections, the listener, and the turns. A connection that closes leaves the table at once, so
 * nothing is sent to it or handled for it. It is freed between two rounds, when nobody can hold it. */
#include "front.h"

#include "base/descriptors.h"
#include "base/log.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

/* How long connections are taken in one round. */
#define ACCEPTS_US 500
#define WATCH_US 1000000
/* How long answers may take to go out when the router ends. */
#define LINGER_MS 100

static void on_listener(struct event_source *source, uint32_t events);

static void connection_free_dead(struct grave *grave)
{
	free(container_of(grave, struct connection, grave));
}

void front_init(struct front *front, struct event_loop *loop, struct users *users, pid_t keeper,
		uint64_t message_max,
		void (*on_request)(struct front *front, const struct connection *connection, struct bytes data))
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		limit.rlim_cur = 1024;
	*front = (struct front){
		.loop = loop,
		.users = users,
		.listener = EVENT_SOURCE_NONE,
		/* The other half is for sessions. */
		.n_connections_max = (size_t)MIN(limit.rlim_cur / 2, (rlim_t)1 << 20),
		.connections_per_uid = UINT64_MAX,
		.message_max = message_max,
		.on_request = on_request,
	};
	admission_init(&front->admission, keeper);
	list_init(&front->due);
	graveyard_init(&front->dead, connection_free_dead);
}

/* Each user has room for at least two messages of the largest size, and all of them for twice what one has. */
void front_limit(struct front *front, const struct front_limits *limits)
{
	uint64_t memory = limits->memory ? limits->memory : UINT64_MAX, least = 2 * front->message_max;

	front->connections_per_uid = limits->connections_per_uid;
	front->users->incoming_each = MAX(least, MIN(2 * least, memory / 8));
	front->users->incoming_max = MAX(2 * least, MIN(8 * least, memory / 4));
}

int front_listen(struct front *front, int listener)
{
	int flags = fcntl(listener, F_GETFL);

	if (flags < 0 || fcntl(listener, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return event_add(front->loop, &front->listener, listener, EPOLLIN, on_listener);
}

/* ---- what is refused ---- */

void front_count_refused(struct front *front, enum front_refusal refusal, const char *why)
{
	static const char *const words[_FRONT_REFUSAL_N] = {
		[FRONT_REFUSED] = "a connection was refused",
		[FRONT_CLOSED] = "a connection was closed",
		[FRONT_DROPPED] = "a client's message was dropped",
	};

	/* A flood must not fill the disk. */
	if (front->n_refused[refusal]++ == 0)
		log_warn(NULL, "%s: %s (further ones are only counted, see stats)", words[refusal], why);
}

uint64_t front_refusals(const struct front *front)
{
	uint64_t n = front->n_unread;

	for (int i = 0; i < _FRONT_REFUSAL_N; i++)
		n += front->n_refused[i];
	return n;
}

void front_count_unread(struct front *front, uid_t uid, size_t n)
{
	if (front->n_unread == 0)
		log_warn(NULL,
			 "client of uid %u does not read: its connection is closed, and the messages "
			 "for it are dropped (further ones are only counted, see stats)",
			 uid);
	front->n_unread += n;
}

/* ---- connections ---- */

static int table_grow(struct front *front, int fd)
{
	size_t size = MAX((size_t)fd + 1, front->table_size * 2);
	struct connection **grown;

	if ((size_t)fd < front->table_size)
		return 0;
	grown = realloc(front->table, size * sizeof(struct connection *));
	if (!grown)
		return -ENOMEM;
	memset(grown + front->table_size, 0, (size - front->table_size) * sizeof(struct connection *));
	front->table = grown;
	front->table_size = size;
	return 0;
}

static struct connection *connection_find(const struct front *front, int fd, uint64_t serial)
{
	struct connection *connection = fd >= 0 && (size_t)fd < front->table_size ? front->table[fd] : NULL;

	return connection && connection->serial == serial ? connection : NULL;
}

static const char *why_not(const struct front *front, const struct user *user)
{
	if (front->n_connections >= front->n_connections_max)
		return "there are as many as the limit of descriptors allows";
	if (!descriptors_left(DESCRIPTORS_CONNECTION))
		return "there are no descriptors left";
	if (user && user->n_connections >= front->connections_per_uid)
		return "its user has as many as connections_per_uid allows";
	return user ? NULL : "there was no memory for it";
}

static const char *connection_add(struct front *front, int fd, uid_t uid)
{
	struct user *user = user_get(front->users, uid);
	const char *why = why_not(front, user);
	struct connection *connection;

	if (why)
		fd_close(fd);
	else if (table_grow(front, fd) || connection_new(&connection, front, user, fd, ++front->last_serial))
		why = "there was no memory for it";
	if (why)
		return why;
	front->table[fd] = connection;
	front->n_connections++;
	front_watch(front, connection);
	return NULL;
}

static void on_listener(struct event_source *source, uint32_t events)
{
	struct front *front = container_of(source, struct front, listener);
	uint64_t until = event_now() + ACCEPTS_US;
	const char *why = NULL;
	uid_t uid;
	int fd, r;

	do {
		r = admission_accept(&front->admission, source->fd, &fd, &uid, &why);
		if (r == ADMISSION_E_EMPTY)
			return;
		if (!r)
			why = connection_add(front, fd, uid);
		if (why)
			front_count_refused(front, FRONT_REFUSED, why);
	} while (event_now() < until);
}

void front_forget(struct front *front, struct connection *connection)
{
	front->table[connection->fd] = NULL;
	front->n_connections--;
	(void)graveyard_bury(&front->dead, &connection->grave);
}

/* ---- requests ---- */

bool front_pending(const struct front *front)
{
	return !list_empty(&front->users->asking);
}

int front_serve(struct front *front)
{
	struct user *user = users_turn(front->users);
	struct connection *connection;
	uint64_t begun;

	if (!user)
		return FRONT_E_EMPTY;
	connection = container_of(user_next(user), struct connection, turn);
	begun = event_now();
	party_turn(&user->party, front->loop, begun);
	front->on_request(front, connection, connection->request);
	party_took(&user->party, event_now() - begun + 1);
	if (connection->fd >= 0)
		connection_proceed(connection);
	return 0;
}

/* ---- what is sent ---- */

void front_send_later(struct front *front, struct connection *connection)
{
	list_remove(&connection->due);
	list_append(&front->due, &connection->due);
}

int front_send(struct front *front, int fd, uint64_t serial, struct text *text)
{
	struct connection *connection = connection_find(front, fd, serial);
	int r;

	if (!connection || connection->deaf)
		return FRONT_E_GONE;
	r = connection_send(connection, text);
	if (r)
		return r;
	if (connection->fd < 0)
		return FRONT_E_GONE;
	return connection->lags ? FRONT_E_WAITS : 0;
}

void front_hang_up(struct front *front, int fd, uint64_t serial)
{
	struct connection *connection = connection_find(front, fd, serial);

	/* Closed when that is heard: its request may be at hand. */
	if (connection)
		(void)shutdown(fd, SHUT_RDWR);
}

bool front_has(const struct front *front, int fd, uint64_t serial)
{
	return connection_find(front, fd, serial) != NULL;
}

bool front_lags(const struct front *front, int fd, uint64_t serial)
{
	const struct connection *connection = connection_find(front, fd, serial);

	return connection && connection->lags;
}

static void feed(struct front *front)
{
	struct connection *connection;
	struct user *user;

	front->room = false;
	list_for_each (user, &front->users->all, node)
		list_for_each (connection, &user->starved, turn)
			if (!connection_feed(connection))
				break;
}

void front_flush(struct front *front)
{
	struct connection *connection;
	uint64_t began = event_now();
	struct list *first;

	front->queued = 0;
	while ((first = list_first(&front->due)) != NULL) {
		uint64_t before = began;

		connection = container_of(first, struct connection, due);
		list_remove(first);
		connection_flush(connection);
		began = event_now();
		party_took(&connection->user->party, began - before);
	}
	if (front->room)
		feed(front);
}

/* ---- what must not take too long ---- */

static void on_watch(struct timer *timer)
{
	struct front *front = container_of(timer, struct front, watch);
	uint64_t now = event_now();

	for (size_t fd = 0; fd < front->table_size; fd++) {
		struct connection *connection = front->table[fd];

		if (connection)
			connection_check(connection, now);
		if (front->table[fd])
			front_watch(front, connection);
	}
}

void front_watch(struct front *front, struct connection *connection)
{
	if (connection->fd >= 0 && !front->watch.index && connection_is_watched(connection))
		(void)timer_set(front->loop, &front->watch, event_now() + WATCH_US, on_watch);
}

/* ---- the end ---- */

static void linger(struct connection *connection, uint64_t until)
{
	struct pollfd item = {.fd = connection->fd, .events = POLLOUT};

	connection_flush(connection);
	while (connection->fd >= 0 && !list_empty(&connection->parcels) && clock_ms() < until) {
		(void)poll(&item, 1, (int)(until - clock_ms()));
		connection_flush(connection);
	}
}

void front_deinit(struct front *front)
{
	uint64_t until = clock_ms() + LINGER_MS;
	struct user *user;

	if (!front->loop)
		return;
	list_for_each (user, &front->users->all, node)
		timer_clear(front->loop, &user->rest);
	for (size_t fd = 0; fd < front->table_size; fd++) {
		struct connection *connection = front->table[fd];

		if (connection)
			linger(connection, until);
		if (connection)
			connection_close(connection);
	}
	graveyard_empty(&front->dead);
	timer_clear(front->loop, &front->watch);
	event_remove(front->loop, &front->listener);
	admission_deinit(&front->admission);
	free(front->table);
	front->loop = NULL;
}
