/* Connections: which are accepted, and which are closed to make room for others.
 *
 * A connection is a stranger until a request on it has shown a token (without tokens: until its first request).
 * Strangers are bounded by their address, others by their tenant. When there is nearly no room, the oldest stranger
 * is closed for a new connection, and if there is none, the idle one that has not been used for the longest time,
 * of the tenant with the most connections. So neither many idle connections nor one tenant can lock the others out.
 */
#include "exchange.h"
#include "local.h"

#include <netinet/in.h>
#include <search.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define CONNECTIONS_MAX 8192
/* In one round. A flood of connections leaves time for requests. */
#define ACCEPTS_PER_ROUND 16
/* Descriptors that connections do not take: of the server's own work, and of each tenant's connections to laird. */
#define OTHERS 256
#define TENANT_FDS 96
/* Of all connections, so many may be of strangers with one address, and of one tenant. */
#define ADDRESS_SHARE 8
#define TENANT_SHARE 4
/* The headers of the first request, and of each later one, must have come within so many seconds. */
#define FIRST_SECONDS 20.0
#define NEXT_SECONDS 75.0
#define ADDRESS_SIZE 16

/* An address with strangers. Of IPv6 the first half counts: a host has all of the other. */
struct peer {
	unsigned char address[ADDRESS_SIZE]; /* first: it is the key */
	size_t n;
	struct connection_list strangers;
};

/* ---- addresses ---- */

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, ADDRESS_SIZE);
}

static void address_of(unsigned char address[static ADDRESS_SIZE], const struct sockaddr *from)
{
	struct in6_addr in6 = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	if (from->sa_family == AF_INET6)
		in6 = ((const struct sockaddr_in6 *)from)->sin6_addr;
	else
		memcpy(&in6.s6_addr[12], &((const struct sockaddr_in *)from)->sin_addr, 4);
	if (!IN6_IS_ADDR_V4MAPPED(&in6))
		memset(&in6.s6_addr[8], 0, 8);
	memcpy(address, in6.s6_addr, ADDRESS_SIZE);
}

static struct peer *peer_get(struct server *server, const struct sockaddr *from)
{
	unsigned char address[ADDRESS_SIZE];
	struct peer **found, *peer;

	address_of(address, from);
	found = tfind(address, &server->peers, compare);
	if (found)
		return *found;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	memcpy(peer->address, address, sizeof(address));
	TAILQ_INIT(&peer->strangers);
	if (!tsearch(peer, &server->peers, compare))
		freep(&peer);
	return peer;
}

/* ---- who it belongs to ---- */

static void stranger_leave(struct connection *connection)
{
	struct peer *peer = connection->peer;

	if (!peer)
		return;
	connection->peer = NULL;
	TAILQ_REMOVE(&peer->strangers, connection, of_peer);
	TAILQ_REMOVE(&connection->server->strangers, connection, of_all);
	if (--peer->n > 0)
		return;
	(void)tdelete(peer, &connection->server->peers, compare);
	free(peer);
}

static void idle_leave(struct connection *connection)
{
	if (connection->idle)
		TAILQ_REMOVE(&connection->tenant->idle, connection, of_all);
	connection->idle = false;
}

static void tenant_leave(struct connection *connection)
{
	idle_leave(connection);
	if (connection->tenant)
		connection->tenant->n_connections--;
	connection->tenant = NULL;
}

/* It is freed when libmicrohttpd has seen it. */
static void connection_close(struct connection *connection)
{
	if (connection->closing)
		return;
	stranger_leave(connection);
	tenant_leave(connection);
	connection->closing = true;
	connection->due = 0;
	connection->server->n_closing++;
	(void)shutdown(connection->fd, SHUT_RDWR);
	if (connection->exchange)
		exchange_drop(connection->exchange);
}

static size_t connections_most(const struct server *server)
{
	struct rlimit limit;
	rlim_t others = OTHERS;

	for (const struct tenant *tenant = server->tenants; tenant; tenant = tenant->next)
		others += TENANT_FDS;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < others + OTHERS)
		return OTHERS;
	return (size_t)MIN(limit.rlim_cur - others, (rlim_t)CONNECTIONS_MAX);
}

/* The oldest stranger; else one of the tenant with the most connections. */
static struct connection *least_needed(const struct server *server)
{
	const struct tenant *largest = NULL;

	if (!TAILQ_EMPTY(&server->strangers))
		return TAILQ_FIRST(&server->strangers);
	for (const struct tenant *tenant = server->tenants; tenant; tenant = tenant->next)
		if (!TAILQ_EMPTY(&tenant->idle) && (!largest || tenant->n_connections > largest->n_connections))
			largest = tenant;
	return largest ? TAILQ_FIRST(&largest->idle) : NULL;
}

static bool room_make(struct server *server)
{
	struct connection *victim;

	if (server->n_connections - server->n_closing < connections_most(server))
		return true;
	victim = least_needed(server);
	if (victim)
		connection_close(victim);
	return victim;
}

bool connection_shown(struct connection *connection, struct tenant *tenant)
{
	struct server *server = connection->server;

	if (connection->tenant == tenant || connection->closing)
		return true;
	if (!server->open && tenant->n_connections >= connections_most(server) / TENANT_SHARE) {
		if (TAILQ_EMPTY(&tenant->idle))
			return false;
		connection_close(TAILQ_FIRST(&tenant->idle));
	}
	stranger_leave(connection);
	tenant_leave(connection);
	connection->tenant = tenant;
	tenant->n_connections++;
	return true;
}

void connections_drop(struct tenant *tenant)
{
	for (struct connection *at = tenant->server->connections; at; at = at->next)
		if (at->tenant == tenant)
			connection_close(at);
}

/* ---- while it lasts ---- */

static void on_hang_up(struct event_source *source, uint32_t events)
{
	struct connection *connection = container_of(source, struct connection, source);

	if (connection->exchange)
		exchange_drop(connection->exchange);
	else
		connection_unwatch(connection);
}

void connection_watch(struct connection *connection)
{
	(void)event_set(&connection->server->loop, &connection->source, connection->fd, EPOLLRDHUP | EPOLLET,
			on_hang_up);
}

void connection_unwatch(struct connection *connection)
{
	event_remove(&connection->server->loop, &connection->source);
}

void connection_works(struct connection *connection, struct exchange *exchange)
{
	idle_leave(connection);
	connection->exchange = exchange;
	connection->due = 0;
	connection->n++;
}

void connection_rests(struct connection *connection)
{
	connection->exchange = NULL;
	if (connection->closing)
		return;
	connection->due = server_now() + NEXT_SECONDS;
	if (!connection->tenant || connection->idle)
		return;
	connection->idle = true;
	TAILQ_INSERT_TAIL(&connection->tenant->idle, connection, of_all);
}

static void on_listener(struct event_source *source, uint32_t events);

static int listener_watch(struct server *server)
{
	return event_set(&server->loop, &server->on_listener, server->listener, EPOLLIN, on_listener);
}

void connections_tick(struct server *server, double now)
{
	for (struct connection *connection = server->connections; connection; connection = connection->next)
		if (connection->due > 0 && connection->due <= now)
			connection_close(connection);
	if (server->deaf)
		server->deaf = listener_watch(server) != 0;
}

/* ---- from its first byte to its last ---- */

void connection_begin(struct server *server, struct MHD_Connection *http, void **contextp)
{
	int fd = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	const struct sockaddr *from =
		MHD_get_connection_info(http, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
	struct peer *peer = peer_get(server, from);
	struct connection *connection = peer ? calloc(1, sizeof(*connection)) : NULL;

	*contextp = connection;
	if (!connection)
		return;
	connection->server = server;
	connection->fd = fd;
	connection->source = EVENT_SOURCE_NONE;
	connection->due = server_now() + FIRST_SECONDS;
	connection->next = server->connections;
	if (connection->next)
		connection->next->previous = connection;
	server->connections = connection;
	server->n_connections++;
	connection->peer = peer;
	TAILQ_INSERT_TAIL(&peer->strangers, connection, of_peer);
	TAILQ_INSERT_TAIL(&server->strangers, connection, of_all);
	if (++peer->n > connections_most(server) / ADDRESS_SHARE)
		connection_close(TAILQ_FIRST(&peer->strangers));
}

void connection_end(struct connection *connection)
{
	struct server *server = connection->server;

	connection_unwatch(connection);
	stranger_leave(connection);
	tenant_leave(connection);
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		server->connections = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	server->n_connections--;
	server->n_closing -= connection->closing;
	free(connection);
}

/* ---- accepting ---- */

/* It may not read it, and then sees a reset. */
static void turn_away(const struct server *server, int fd, const char *status, const char *code, const char *why)
{
	char answer[512];
	int n = snprintf(answer, sizeof(answer),
			 "HTTP/1.1 %s\r\nContent-Type: application/problem+json\r\nConnection: close\r\n\r\n"
			 "{\"type\": \"about:blank\", \"status\": %.3s, \"code\": \"%s\", \"detail\": \"%s\"}\n",
			 status, status, code, why);

	if (!server->options->certificate)
		(void)send(fd, answer, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)close(fd);
}

static void connection_take(struct server *server, int fd, const struct sockaddr *from, socklen_t size)
{
	if (server->open && !local_is_ours(server->local, fd))
		turn_away(server, fd, "403 Forbidden", "denied",
			  "without tokens this is for programs of the user who has started it: lair serve "
			  "--tokens FILE");
	else if (!room_make(server))
		turn_away(server, fd, "503 Service Unavailable", "limit", "all connections are in use");
	else
		/* Which closes it if it fails. */
		(void)MHD_add_connection(server->http, fd, from, size);
}

static void on_listener(struct event_source *source, uint32_t events)
{
	struct server *server = container_of(source, struct server, on_listener);

	for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
		struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
		socklen_t size = sizeof(from);
		int fd = accept4(server->listener, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			connection_take(server, fd, (struct sockaddr *)&from, size);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			/* Until the next tick. */
			event_remove(&server->loop, &server->on_listener);
			server->deaf = true;
			return;
		} else if (errno == EAGAIN) {
			return;
		}
	}
}

int connections_open(struct server *server)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	TAILQ_INIT(&server->strangers);
	return listener_watch(server);
}

unsigned connections_limit(void)
{
	/* Those that are being closed have a place as well. */
	return CONNECTIONS_MAX + 2 * ACCEPTS_PER_ROUND;
}
