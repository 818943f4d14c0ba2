/* The loop: one thread, one blocking call. Libmicrohttpd has an epoll set of its own, which is in ours, and runs
 * when that is readable. A connection whose exchange waits for laird is taken out of that set
 * (MHD_suspend_connection), and is in ours alone meanwhile, to see its client go away. */
#include "server.h"

#include "exchange.h"
#include "local.h"
#include "schema.h"

#include "proto/clock.h"

#include "text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LISTEN_DEFAULT "127.0.0.1:8888"
#define CONNECTIONS_MAX 8192
#define CONNECTION_MEMORY ((size_t)32 << 10)
/* A client that takes or sends nothing at all for so long is gone. */
#define IDLE_SECONDS 60u
/* The headers of the first request, and of each later one, must have come within so many seconds. */
#define FIRST_SECONDS 20.0
#define NEXT_SECONDS 75.0
#define TICK 0.25
#define EVENTS 64
#define ENDING_SECONDS 2.0
/* Descriptors that connections do not take. */
#define OTHERS 256

#define MEMBER_OF(type, member, pointer) ((type *)((char *)(pointer)-offsetof(type, member)))

double server_now(void)
{
	return clock_seconds();
}

static int say(int error, const char *format, ...) _printf_(2, 3);

static int say(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("lair serve: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return error;
}

int server_watch(struct server *server, int fd, uint32_t events, struct watched *watched)
{
	struct epoll_event event = {.events = events, .data.ptr = watched};

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void server_unwatch(struct server *server, int fd)
{
	(void)epoll_ctl(server->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- connections ---- */

static void on_hang_up(struct watched *watched)
{
	struct connection *connection = MEMBER_OF(struct connection, watched, watched);

	if (connection->exchange)
		exchange_drop(connection->exchange);
	else
		connection_unwatch(connection);
}

void connection_watch(struct connection *connection)
{
	if (!connection->watches)
		connection->watches = server_watch(connection->server, connection->fd, EPOLLRDHUP | EPOLLET,
						   &connection->watched) == 0;
}

void connection_unwatch(struct connection *connection)
{
	if (connection->watches)
		server_unwatch(connection->server, connection->fd);
	connection->watches = false;
}

void connection_works(struct connection *connection, struct exchange *exchange)
{
	connection->exchange = exchange;
	connection->due = 0;
	connection->n++;
}

void connection_rests(struct connection *connection)
{
	connection->exchange = NULL;
	connection->due = server_now() + NEXT_SECONDS;
}

static void connection_begin(struct server *server, struct MHD_Connection *http, void **contextp)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *connection = calloc(1, sizeof(*connection));

	*contextp = connection;
	if (!connection)
		return;
	connection->server = server;
	connection->fd = info->connect_fd;
	connection->foreign = server->open && !local_is_ours(server->local, connection->fd);
	connection->watched.on_ready = on_hang_up;
	connection->due = server_now() + FIRST_SECONDS;
	connection->next = server->connections;
	if (connection->next)
		connection->next->previous = connection;
	server->connections = connection;
	server->n_connections++;
}

static void connection_end(struct server *server, struct connection *connection)
{
	if (!connection)
		return;
	connection_unwatch(connection);
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		server->connections = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	server->n_connections--;
	free(connection);
}

/* ---- what libmicrohttpd calls ---- */

static void on_connection(void *userdata, struct MHD_Connection *http, void **contextp,
			  enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		connection_begin(userdata, http, contextp);
	else
		connection_end(userdata, *contextp);
}

static void *on_uri(void *userdata, const char *uri, struct MHD_Connection *http)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct exchange *exchange;

	if (!info || !info->socket_context)
		return NULL;
	exchange = exchange_new(userdata, http, uri);
	if (exchange)
		exchange->connection = info->socket_context;
	return exchange;
}

static enum MHD_Result on_access(void *userdata, struct MHD_Connection *http, const char *url, const char *method,
				 const char *version, const char *upload, size_t *size, void **contextp)
{
	(void)userdata;
	(void)http;
	(void)url;
	(void)version;
	return *contextp ? exchange_access(*contextp, method, upload, size) : MHD_NO;
}

static void on_completed(void *userdata, struct MHD_Connection *http, void **contextp,
			 enum MHD_RequestTerminationCode code)
{
	(void)userdata;
	(void)http;
	(void)code;
	if (*contextp)
		exchange_completed(*contextp);
	*contextp = NULL;
}

/* What it has to say is about clients, and has their bytes in it. */
static void on_log(void *userdata, const char *format, va_list args)
{
	(void)userdata;
	(void)format;
	(void)args;
}

/* ---- who is this machine ---- */

bool host_is_loopback(const char *host, size_t size)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	size_t name = size;
	const char *colon;

	if (size > 0 && host[0] == '[') {
		const char *end = memchr(host, ']', size);

		name = end ? (size_t)(end - host) + 1 : size;
	} else {
		colon = memchr(host, ':', size);
		name = colon ? (size_t)(colon - host) : size;
	}
	if (name < size && (host[name] != ':' || strspn(host + name + 1, "0123456789") < size - name - 1))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == name && strncasecmp(host, names[i], name) == 0)
			return true;
	return false;
}

static bool address_is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* ---- listening ---- */

/* HOST:PORT, [HOST]:PORT or PORT, into two texts. Returns 0 or -EINVAL. */
static int address_split(const char *given, char host[static 256], const char **portp)
{
	const char *colon = strrchr(given, ':');
	size_t size = colon ? (size_t)(colon - given) : 0;

	*portp = colon ? colon + 1 : given;
	if (!**portp || strspn(*portp, "0123456789") != strlen(*portp) || size >= 256)
		return -EINVAL;
	if (size > 2 && given[0] == '[' && given[size - 1] == ']') {
		given++;
		size -= 2;
	} else if (memchr(given, ':', size)) {
		return -EINVAL;
	}
	snprintf(host, 256, "%.*s", colon ? (int)size : 9, colon ? given : "127.0.0.1");
	return *host ? 0 : -EINVAL;
}

static void address_show(struct server *server)
{
	struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
	socklen_t size = sizeof(address);
	char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";

	(void)getsockname(server->listener, (struct sockaddr *)&address, &size);
	(void)getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port, sizeof(port),
			  NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(server->address, sizeof(server->address), strchr(host, ':') ? "[%.100s]:%s" : "%.100s:%s", host,
		 port);
}

static int listen_at(struct server *server, const struct addrinfo *at)
{
	int one = 1;

	if (server->open && !address_is_loopback(at->ai_addr))
		return say(-EACCES, "%s is no address of loopback: other addresses need --tokens FILE",
			   server->options->listen);
	server->listener = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listener < 0)
		return say(-errno, "%s", strerror(errno));
	(void)setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(server->listener, at->ai_addr, at->ai_addrlen) < 0 || listen(server->listener, 1024) < 0)
		return say(-errno, "cannot listen on %s: %s",
			   server->options->listen ? server->options->listen : LISTEN_DEFAULT, strerror(errno));
	address_show(server);
	if (!address_is_loopback(at->ai_addr) && !server->options->certificate)
		say(0, "tokens travel in the clear, unless a proxy in front has TLS: see --cert");
	return 0;
}

static int listen_open(struct server *server)
{
	const char *given = server->options->listen ? server->options->listen : LISTEN_DEFAULT, *port;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
	char host[256];
	int r;

	if (address_split(given, host, &port))
		return say(-EINVAL, "--listen: expected HOST:PORT, got \"%s\"", given);
	r = getaddrinfo(host, port, &hints, &found);
	if (r)
		return say(-EINVAL, "%s: %s", given, gai_strerror(r));
	r = listen_at(server, found);
	freeaddrinfo(found);
	return r;
}

static int local_begin(struct server *server)
{
	if (!server->open)
		return 0;
	server->local = local_open();
	return server->local < 0 ? say(server->local,
				       "this kernel does not tell which user a client is (%s), so --tokens FILE is "
				       "needed",
				       strerror(-server->local))
				 : 0;
}

/* ---- life ---- */

static unsigned connections_allowed(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < (rlim_t)2 * OTHERS)
		return OTHERS;
	return (unsigned)MIN(limit.rlim_cur - OTHERS, (rlim_t)CONNECTIONS_MAX);
}

static void on_http(struct watched *watched)
{
	/* The loop runs libmicrohttpd in each round. */
	(void)watched;
}

/* The content of a file, terminated; the caller's to free. NULL after it was said why. */
static char *file_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	size_t size;
	int r = fd < 0 ? -errno : read_all(fd, &text, &size);

	fd_close(fd);
	if (r)
		say(r, "%s: %s", path, strerror(-r));
	return r ? NULL : text;
}

static struct MHD_Daemon *http_start(struct server *server, const char *certificate, const char *key)
{
	const struct MHD_OptionItem tls[] = {
		{.option = MHD_OPTION_HTTPS_MEM_CERT, .ptr_value = text_unconst(certificate)},
		{.option = MHD_OPTION_HTTPS_MEM_KEY, .ptr_value = text_unconst(key)},
		{.option = MHD_OPTION_END},
	};
	const struct MHD_OptionItem none[] = {{.option = MHD_OPTION_END}};
	unsigned flags =
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (certificate ? MHD_USE_TLS : 0);

	return MHD_start_daemon(flags, 0, NULL, NULL, on_access, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, server,
				MHD_OPTION_LISTEN_SOCKET, server->listener, MHD_OPTION_CONNECTION_LIMIT,
				connections_allowed(), MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
				MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED,
				on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
				MHD_OPTION_URI_LOG_CALLBACK, on_uri, server, MHD_OPTION_ARRAY,
				certificate ? tls : none, MHD_OPTION_END);
}

static int http_open(struct server *server)
{
	const struct serve_options *options = server->options;
	_cleanup_(freep) char *certificate = options->certificate ? file_read(options->certificate) : NULL;
	_cleanup_(freep) char *key = options->key ? file_read(options->key) : NULL;
	const union MHD_DaemonInfo *info;

	if (options->certificate && (!certificate || !key))
		return -EINVAL;
	server->http = http_start(server, certificate, key);
	if (key)
		sodium_memzero(key, strlen(key));
	info = server->http ? MHD_get_daemon_info(server->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return say(-EIO, "libmicrohttpd does not start%s",
			   certificate ? ": look at the certificate and its key" : "");
	server->listener = -1; /* it is the daemon's */
	server->on_http.on_ready = on_http;
	return server_watch(server, info->epoll_fd, EPOLLIN, &server->on_http);
}

static void on_signal(struct watched *watched)
{
	struct server *server = MEMBER_OF(struct server, on_signal, watched);
	struct signalfd_siginfo info;

	if (read(server->signals, &info, sizeof(info)) == sizeof(info))
		server->ending = true;
}

static int signals_open(struct server *server)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	server->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	server->on_signal.on_ready = on_signal;
	return server->signals < 0 ? -errno : server_watch(server, server->signals, EPOLLIN, &server->on_signal);
}

/* laird has to be there, or is started. */
static int daemon_open(const struct server *server)
{
	struct lair *lair = NULL;
	int r;

	r = lair_new(&lair, &server->options->lair);
	if (!r)
		r = lair_connect(lair);
	if (r)
		r = say(r, "%s", lair ? lair_error(lair) : strerror(-r));
	(void)lair_free(lair);
	return r;
}

static int doors_open(struct server *server)
{
	int r = schemas_open();

	for (const struct door *const *door = server->options->doors; !r && *door; door++)
		if ((*door)->open)
			r = (*door)->open(server);
	return r;
}

static int server_open(struct server *server)
{
	int r;

	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0 || sodium_init() < 0)
		return say(-EIO, "cannot begin: %s", strerror(errno));
	r = signals_open(server);
	if (!r)
		r = tenants_open(server);
	if (!r)
		r = local_begin(server);
	if (!r)
		r = listen_open(server);
	if (!r)
		r = daemon_open(server);
	if (!r)
		r = doors_open(server);
	return r ? r : http_open(server);
}

/* ---- rounds ---- */

static void tick(struct server *server, double now)
{
	for (struct exchange *exchange = server->exchanges, *next; exchange; exchange = next) {
		next = exchange->next;
		/* Most wait for less than a tick, and cost no call of the kernel. */
		if (exchange->suspended)
			connection_watch(exchange->connection);
		if (exchange->alarm > 0 && exchange->alarm <= now && !exchange->gone) {
			exchange->alarm = 0;
			exchange->on_alarm(exchange);
		}
	}
	for (struct tenant *tenant = server->tenants; tenant; tenant = tenant->next)
		if (tenant->streams.held > 0 && tenant->streams.held <= now)
			line_go_on(&tenant->streams);
	for (struct connection *connection = server->connections; connection; connection = connection->next)
		if (connection->due > 0 && connection->due <= now) {
			connection->due = 0;
			(void)shutdown(connection->fd, SHUT_RDWR);
		}
	(void)tenants_reload(server);
	/* Before those who were revoked are freed. */
	for (const struct door *const *door = server->options->doors; *door; door++)
		if ((*door)->tick)
			(*door)->tick(server, now);
	tenants_sweep(server);
	server->next_tick = now + TICK;
}

static int wait_ms(const struct server *server)
{
	MHD_UNSIGNED_LONG_LONG most = 0;
	double left = (server->next_tick - server_now()) * 1e3;

	if (server->n_connections == 0)
		left = 1e3;
	if (MHD_get_timeout(server->http, &most) == MHD_YES)
		left = fmin(left, (double)most);
	return (int)ceil(fmax(left, 0));
}

static int server_round(struct server *server)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(server->epoll, events, EVENTS, wait_ms(server));

	if (n < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < n; i++) {
		struct watched *watched = events[i].data.ptr;

		watched->on_ready(watched);
	}
	if (server_now() >= server->next_tick)
		tick(server, server_now());
	(void)MHD_run(server->http);
	return 0;
}

/* Answers that are complete are sent; everything else breaks off. */
static void server_end(struct server *server)
{
	double until = server_now() + ENDING_SECONDS;
	MHD_socket listener = MHD_quiesce_daemon(server->http);

	if (listener != MHD_INVALID_SOCKET)
		(void)close(listener);
	for (struct exchange *exchange = server->exchanges; exchange; exchange = exchange->next)
		if (!exchange->queued || exchange->streaming)
			exchange_drop(exchange);
	while (server->exchanges && server_now() < until)
		if (server_round(server))
			break;
	/* None may stand still when it stops. */
	for (struct exchange *exchange = server->exchanges; exchange; exchange = exchange->next)
		exchange_drop(exchange);
	(void)MHD_run(server->http);
	MHD_stop_daemon(server->http);
}

static void server_close(struct server *server)
{
	for (const struct door *const *door = server->options->doors; *door; door++)
		if ((*door)->close)
			(*door)->close(server);
	tenants_close(server);
	schemas_close();
	fd_close(server->listener);
	fd_close(server->signals);
	fd_close(server->local);
	fd_close(server->epoll);
}

int serve_run(const struct serve_options *options)
{
	struct server server = {.options = options, .epoll = -1, .signals = -1, .listener = -1, .local = -1};
	int r;

	r = server_open(&server);
	if (!r) {
		printf("http%s://%s\n", options->certificate ? "s" : "", server.address);
		fflush(stdout);
		while (!r && !server.ending)
			r = server_round(&server);
	}
	if (server.http)
		server_end(&server);
	server_close(&server);
	return r;
}
