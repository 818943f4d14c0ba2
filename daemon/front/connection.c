/* A connection reads only as much as it can hand on. It stops reading while a request of it waits for a turn,
 * while its user has no room for the next message, and while its client does not read. The rest stays in the
 * socket and the client waits. So a connection holds little more than one message each way, and nothing that was
 * accepted is lost. */
#include "connection.h"

#include "base/log.h"
#include "front.h"

#include <sys/socket.h>
#include <sys/uio.h>

/* What is read at once while nothing larger is expected. */
#define READ_SIZE 16384
/* A message up to this size needs no room reserved, and has its turn without a rest. */
#define SMALL 65536
/* Between two that have rested. */
#define REST_US 1000
/* If so much waits for the client, cells that stream to it pause; they go on when so little is left. */
#define LAG_BEGIN ((uint64_t)1 << 20)
#define LAG_END ((uint64_t)256 << 10)
/* While so much waits for the client, its further requests do. */
#define UNREAD_MAX ((uint64_t)8 << 20)
/* What may wait for all clients of one user, if that user's share has no bound. */
#define WAITING_MAX ((uint64_t)256 << 20)
#define HANDSHAKE_US (5 * 1000000ULL)
#define PATIENCE_US (30 * 1000000ULL)
#define PARTS_MAX 64
#define PARCEL_PARTS_MAX (1 + TEXT_PARTS_MAX)
/* At most so much is sent in one turn, by all its calls together: a client that reads while the kernel copies takes
 * all that one call offers. */
#define FLUSH_MAX ((size_t)256 << 10)

static void on_event(struct event_source *source, uint32_t events);

/* ---- what is to be sent ---- */

static void parcel_free(struct parcel *parcel)
{
	list_remove(&parcel->node);
	text_free(&parcel->body);
	free(parcel);
}

static void parcel_queue(struct connection *connection, struct parcel *parcel)
{
	if (list_empty(&connection->parcels))
		connection->told = event_now();
	list_append(&connection->parcels, &parcel->node);
	connection->waiting += parcel->size;
	connection->user->outgoing += parcel->size;
	connection->lags |= connection->waiting > LAG_BEGIN;
	front_send_later(connection->front, connection);
}

static void parcel_done(struct connection *connection, struct parcel *parcel)
{
	connection->waiting -= parcel->size;
	connection->user->outgoing -= parcel->size;
	parcel_free(parcel);
}

/* Nobody will read it. */
static void parcels_drop(struct connection *connection)
{
	struct parcel *parcel;

	list_for_each (parcel, &connection->parcels, node)
		parcel_done(connection, parcel);
	connection->blocked = false;
}

/* Send an answer of the protocol itself. */
static int answer(struct connection *connection, const char *data, size_t size)
{
	struct parcel *parcel = calloc(1, sizeof(*parcel));

	if (!parcel)
		return -ENOMEM;
	list_init(&parcel->node);
	memcpy(parcel->header, data, size);
	parcel->header_size = (uint8_t)size;
	parcel->size = size;
	parcel_queue(connection, parcel);
	return 0;
}

static void give_up(struct connection *connection)
{
	front_count_unread(connection->front, connection->user->uid, list_size(&connection->parcels));
	connection_close(connection);
}

/* Answers of cells never come to so much: what a cell holds is charged twice, and its answer once. */
static bool waits_too_long(const struct connection *connection, uint64_t newest)
{
	const struct user *user = connection->user;
	uint64_t most = user->users->share ? user->users->share : WAITING_MAX;

	return connection->waiting > newest && user->outgoing > most;
}

int connection_send(struct connection *connection, struct text *text)
{
	struct parcel *parcel = connection->deaf ? NULL : calloc(1, sizeof(*parcel));
	size_t size = text_size(text);

	if (!parcel)
		return connection->deaf ? 0 : -ENOMEM;
	list_init(&parcel->node);
	parcel->header_size = (uint8_t)zmtp_put_header(&connection->zmtp, parcel->header, size);
	parcel->body = *text;
	*text = (struct text){.bulk = NULL};
	parcel->size = parcel->header_size + size;
	parcel_queue(connection, parcel);
	connection->front->queued += parcel->size;
	if (waits_too_long(connection, parcel->size))
		give_up(connection);
	return 0;
}

/* The unsent bytes of @parcel. Returns how many parts they are. */
static size_t parcel_parts(const struct parcel *parcel, struct iovec parts[static PARCEL_PARTS_MAX])
{
	size_t sent = parcel->sent, first = 0, n = 1;

	parts[0] = (struct iovec){.iov_base = (char *)parcel->header, .iov_len = parcel->header_size};
	n += text_parts(&parcel->body, parts + 1);
	while (first < n && sent >= parts[first].iov_len)
		sent -= parts[first++].iov_len;
	if (first == n)
		return 0;
	parts[first].iov_base = (char *)parts[first].iov_base + sent;
	parts[first].iov_len -= sent;
	memmove(parts, parts + first, (n - first) * sizeof(*parts));
	return n - first;
}

/* What is over @most is cut off. Returns how many parts are left. */
static size_t parts_cut(struct iovec *parts, size_t n, size_t most)
{
	for (size_t i = 0; i < n; i++) {
		if (parts[i].iov_len >= most) {
			parts[i].iov_len = most;
			return i + 1;
		}
		most -= parts[i].iov_len;
	}
	return n;
}

static ssize_t parcels_send(struct connection *connection, size_t most)
{
	struct iovec parts[PARTS_MAX];
	struct msghdr message = {.msg_iov = parts};
	struct parcel *parcel;

	list_for_each (parcel, &connection->parcels, node) {
		if (message.msg_iovlen + PARCEL_PARTS_MAX > PARTS_MAX)
			break;
		message.msg_iovlen += parcel_parts(parcel, parts + message.msg_iovlen);
	}
	message.msg_iovlen = parts_cut(parts, message.msg_iovlen, most);
	return sendmsg(connection->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void parcels_advance(struct connection *connection, size_t sent)
{
	struct parcel *parcel;

	list_for_each (parcel, &connection->parcels, node) {
		size_t n = MIN(sent, parcel->size - parcel->sent);

		parcel->sent += n;
		sent -= n;
		if (parcel->sent < parcel->size)
			break;
		parcel_done(connection, parcel);
	}
}

static uint32_t wanted_events(const struct connection *connection)
{
	return (connection->waiting < UNREAD_MAX ? EPOLLIN : 0) | (connection->blocked ? EPOLLOUT : 0);
}

/* Go on with bytes that were read before, and not looked at because too much waited for the client. */
static void go_on(struct connection *connection)
{
	if (connection->waiting < UNREAD_MAX && !connection->request.data && !connection->starved)
		connection_proceed(connection);
}

void connection_flush(struct connection *connection)
{
	bool stopped = connection->waiting >= UNREAD_MAX;
	size_t sent = 0;
	ssize_t n = 0;

	if (connection->fd < 0)
		return;
	while (!list_empty(&connection->parcels) && sent < FLUSH_MAX &&
	       (n = parcels_send(connection, FLUSH_MAX - sent)) > 0) {
		parcels_advance(connection, (size_t)n);
		sent += (size_t)n;
		connection->told = event_now();
	}
	connection->blocked = n < 0 ? errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM
				    : !list_empty(&connection->parcels);
	if (n < 0 && !connection->blocked) {
		connection->deaf = true;
		parcels_drop(connection);
	}
	if (connection->lags && connection->waiting <= LAG_END) {
		connection->lags = false;
		connection->front->drained = true;
	}
	event_change(connection->front->loop, &connection->source, wanted_events(connection));
	front_watch(connection->front, connection);
	if (stopped)
		go_on(connection);
}

/* ---- what is read ---- */

static void data_free(struct connection *connection)
{
	struct front *front = connection->front;

	free(connection->data);
	connection->data = NULL;
	connection->start = connection->end = connection->size = 0;
	user_release(connection->user, connection->reserved);
	front->room |= connection->reserved > 0;
	connection->reserved = 0;
}

/* Take it out of the epoll set altogether: the end of a peer would be reported again and again. */
static void starve(struct connection *connection, uint64_t wanted)
{
	connection->starved = true;
	connection->wanted = wanted;
	list_append(&connection->user->starved, &connection->turn);
	event_remove(connection->front->loop, &connection->source);
}

/* Whether @size bytes may be kept. */
static bool reserve(struct connection *connection, uint64_t size)
{
	uint64_t more = size > connection->reserved ? size - connection->reserved : 0;

	if (size <= SMALL)
		user_hold(connection->user, more);
	else if (!user_reserve(connection->user, more))
		return false;
	connection->reserved += more;
	return true;
}

/* The next item takes @wanted bytes from start on. */
static void expect(struct connection *connection, uint64_t wanted)
{
	size_t have = connection->end - connection->start;

	if (have == 0) {
		data_free(connection);
		return;
	}
	if (wanted <= connection->size - connection->start)
		return;
	memmove(connection->data, connection->data + connection->start, have);
	connection->start = 0;
	connection->end = have;
	if (!reserve(connection, wanted))
		starve(connection, wanted);
}

static int listen_to(struct connection *connection)
{
	int r = event_add(connection->front->loop, &connection->source, connection->fd, wanted_events(connection),
			  on_event);

	event_give(&connection->source, &connection->user->party);
	return r;
}

bool connection_feed(struct connection *connection)
{
	if (!reserve(connection, connection->wanted) || listen_to(connection))
		return false;
	connection->starved = false;
	list_remove(&connection->turn);
	return true;
}

/* Grow the buffer by what was reserved and will soon be needed. */
static int data_grow(struct connection *connection)
{
	size_t size = connection->size ? 2 * connection->size : READ_SIZE;
	char *grown;

	if (connection->end < connection->size)
		return 0;
	if (!connection->data)
		(void)reserve(connection, READ_SIZE);
	size = (size_t)MIN((uint64_t)size, connection->reserved);
	grown = realloc(connection->data, size);
	if (!grown)
		return -ENOMEM;
	connection->data = grown;
	connection->size = size;
	return 0;
}

/* ---- what it says ---- */

static void broken(struct connection *connection, const char *why)
{
	char reason[ZMTP_ANSWER_MAX];
	size_t size = zmtp_put_error(reason, why);

	if (connection->zmtp.phase == ZMTP_HANDSHAKE && !answer(connection, reason, size))
		connection_flush(connection);
	front_count_refused(connection->front, FRONT_CLOSED, why);
	connection_close(connection);
}

static void on_rested(struct timer *timer);

static void rest(struct user *user, struct event_loop *loop, uint64_t us)
{
	(void)timer_set(loop, &user->rest, event_now() + us, on_rested);
}

/* One at a time: what it takes shows when it is done. */
static void on_rested(struct timer *timer)
{
	struct user *user = container_of(timer, struct user, rest);
	struct list *first = list_first(&user->resting);
	struct connection *connection = first ? container_of(first, struct connection, turn) : NULL;
	struct event_loop *loop = connection ? connection->front->loop : NULL;
	uint64_t wait = connection ? party_waits(&user->party, loop) : 0;

	if (!connection)
		return;
	if (!wait && listen_to(connection) == 0) {
		list_remove(&connection->turn);
		user_asks(user, loop, &connection->turn);
	}
	if (!list_empty(&user->resting))
		rest(user, loop, MAX(wait, (uint64_t)REST_US));
}

static void ready(struct connection *connection, struct bytes request)
{
	struct event_loop *loop = connection->front->loop;
	struct user *user = connection->user;
	uint64_t wait = request.size > SMALL ? party_waits(&user->party, loop) : 0;

	connection->request = request;
	if (!wait && (request.size <= SMALL || list_empty(&user->resting))) {
		user_asks(user, loop, &connection->turn);
		return;
	}
	list_append(&user->resting, &connection->turn);
	event_remove(loop, &connection->source);
	if (!user->rest.index)
		rest(user, loop, MAX(wait, (uint64_t)REST_US));
}

static int ping(struct connection *connection, const struct zmtp_item *item)
{
	char pong[ZMTP_ANSWER_MAX];
	size_t size;

	connection->ttl = item->ttl * 100000ULL;
	/* Whatever is on the way tells the peer as much. */
	if (!list_empty(&connection->parcels))
		return 0;
	size = zmtp_put_pong(pong, item->data);
	return answer(connection, pong, size);
}

/* Returns 0, -errno, or ZMTP_E_MORE if nothing more shall be read. */
static int item_handle(struct connection *connection, const struct zmtp_item *item)
{
	char hello[ZMTP_ANSWER_MAX];
	size_t size;

	switch (item->kind) {
	case ZMTP_GREETED:
		size = zmtp_put_ready(hello);
		return answer(connection, hello, size);
	case ZMTP_READY:
		connection->heard = event_now();
		return 0;
	case ZMTP_PING:
		return ping(connection, item);
	case ZMTP_PARTS:
		front_count_refused(connection->front, FRONT_DROPPED, "it has several parts");
		return 0;
	case ZMTP_MESSAGE:
		ready(connection, item->data);
		return ZMTP_E_MORE;
	}
	return 0;
}

void connection_proceed(struct connection *connection)
{
	struct zmtp_item item;
	uint64_t wanted;
	const char *why;
	size_t used;
	int r = 0;

	connection->request.data = NULL;
	while (!r && connection->waiting < UNREAD_MAX) {
		r = zmtp_next(&connection->zmtp,
			      (struct bytes){.data = connection->data ? connection->data + connection->start : "",
					     .size = connection->end - connection->start},
			      &item, &used, &wanted, &why);
		connection->start += used;
		if (r == ZMTP_E_MORE)
			expect(connection, wanted);
		else if (r == ZMTP_E_BROKEN)
			broken(connection, why);
		else
			r = item_handle(connection, &item);
	}
	if (r < 0)
		connection_close(connection);
}

static void receive(struct connection *connection)
{
	ssize_t n;

	if (connection->request.data || connection->starved || connection->waiting >= UNREAD_MAX)
		return;
	if (data_grow(connection)) {
		broken(connection, "there is no memory for its message");
		return;
	}
	n = recv(connection->fd, connection->data + connection->end, connection->size - connection->end,
		 MSG_DONTWAIT);
	if (n > 0) {
		if (connection->zmtp.phase == ZMTP_OPEN)
			connection->heard = event_now();
		connection->end += (size_t)n;
		connection_proceed(connection);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		connection_close(connection);
		return;
	} else if (connection->end == 0) {
		data_free(connection);
	}
	if (connection->fd >= 0)
		front_watch(connection->front, connection);
}

static void on_event(struct event_source *source, uint32_t events)
{
	struct connection *connection = container_of(source, struct connection, source);

	if (events & EPOLLHUP) {
		connection->deaf = true;
		parcels_drop(connection);
		go_on(connection);
	}
	if (connection->fd >= 0 && (events & EPOLLOUT))
		front_send_later(connection->front, connection);
	if (connection->fd >= 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		receive(connection);
}

/* ---- its life ---- */

int connection_new(struct connection **connectionp, struct front *front, struct user *user, int fd, uint64_t serial)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	char greeting[ZMTP_GREETING_SIZE];
	int r;

	if (!connection) {
		fd_close(fd);
		return -ENOMEM;
	}
	*connection = (struct connection){
		.front = front,
		.user = user,
		.serial = serial,
		.fd = fd,
		.source = EVENT_SOURCE_NONE,
		.zmtp = {.message_max = front->message_max},
		.heard = event_now(),
	};
	list_init(&connection->turn);
	list_init(&connection->due);
	list_init(&connection->parcels);
	r = listen_to(connection);
	if (!r)
		r = answer(connection, greeting, zmtp_put_greeting(greeting));
	if (r) {
		event_remove(front->loop, &connection->source);
		list_remove(&connection->due);
		fd_close(fd);
		free(connection);
		return r;
	}
	user->n_connections++;
	*connectionp = connection;
	return 0;
}

void connection_close(struct connection *connection)
{
	if (connection->fd < 0)
		return;
	parcels_drop(connection);
	data_free(connection);
	connection->request.data = NULL;
	event_remove(connection->front->loop, &connection->source);
	user_leave(connection->user, &connection->turn);
	list_remove(&connection->due);
	front_forget(connection->front, connection);
	fd_closep(&connection->fd);
	/* Those who stream to it are told so when they try. */
	connection->front->drained |= connection->lags;
	connection->user->n_connections--;
}

/* ---- what must not take too long ---- */

static bool is_partial(const struct connection *connection)
{
	return connection->end > connection->start && !connection->request.data && !connection->starved &&
	       connection->waiting < UNREAD_MAX;
}

bool connection_is_watched(const struct connection *connection)
{
	return connection->zmtp.phase != ZMTP_OPEN || !list_empty((struct list *)&connection->parcels) ||
	       is_partial(connection) || connection->ttl > 0;
}

void connection_check(struct connection *connection, uint64_t now)
{
	uint64_t silent = now - MIN(connection->heard, now), stuck = now - MIN(connection->told, now);

	if (connection->zmtp.phase != ZMTP_OPEN && silent > HANDSHAKE_US)
		broken(connection, "it has not finished its greeting in time");
	else if (!list_empty(&connection->parcels) && stuck > PATIENCE_US)
		give_up(connection);
	else if (is_partial(connection) && silent > PATIENCE_US)
		broken(connection, "it began a message and did not go on");
	else if (connection->ttl > 0 && silent > connection->ttl && !connection->request.data &&
		 !connection->starved)
		connection_close(connection);
}
