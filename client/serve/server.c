/* The loop: one thread, one blocking call. Libmicrohttpd has an epoll set of its own, which is in our loop, and
 * runs in each round. A connection whose exchange waits for laird is taken out of that set
 * (MHD_suspend_connection), and is in our loop alone meanwhile, to see its client go away. */
#include "server.h"

#include "exchange.h"
#include "local.h"
#include "schema.h"

#include "proto/clock.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LISTEN_DEFAULT "127.0.0.1:8888"
#define CONNECTION_MEMORY ((size_t)32 << 10)
/* A client that takes or sends nothing at all for so long is gone. */
#define IDLE_SECONDS 60u
#define TICK 0.25
/* Output of cells is read after requests, and for so long in a round. */
#define STREAMS_US 500
/* A tenant whose last request came within so many seconds is not to wait for the streams of another. */
#define ASKED_SECONDS 1.0
#define TRIM (8 << 20)
#define ENDING_SECONDS 2.0

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

/* ---- what libmicrohttpd calls ---- */

static void on_connection(void *userdata, struct MHD_Connection *http, void **contextp,
			  enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		connection_begin(userdata, http, contextp);
	else if (*contextp)
		connection_end(*contextp);
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
	return *contextp ? exchange_access(*contextp, method, version, upload, size) : MHD_NO;
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

/* Its messages are about clients, and have their bytes in them. */
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

/* getaddrinfo takes the port modulo 65536. */
static bool port_valid(const char *port)
{
	size_t size = strlen(port);

	return size > 0 && size <= 5 && strspn(port, "0123456789") == size && strtoul(port, NULL, 10) <= 65535;
}

/* HOST:PORT, [HOST]:PORT or PORT, into two texts. Returns 0 or -EINVAL. */
static int address_split(const char *given, char host[static 256], const char **portp)
{
	const char *colon = strrchr(given, ':');
	size_t size = colon ? (size_t)(colon - given) : 0;

	*portp = colon ? colon + 1 : given;
	if (!port_valid(*portp) || size >= 256)
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
		return say(-EINVAL, "--listen: expected HOST:PORT, with a port from 0 to 65535, got \"%s\"", given);
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

static void on_http(struct event_source *source, uint32_t events)
{
	/* The loop runs libmicrohttpd in each round. */
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
	unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
			 (certificate ? MHD_USE_TLS : 0);

	return MHD_start_daemon(flags, 0, NULL, NULL, on_access, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, server,
				MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_LIMIT, connections_limit(),
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
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
	int r;

	if (options->certificate && (!certificate || !key))
		return -EINVAL;
	server->http = http_start(server, certificate, key);
	if (key)
		sodium_memzero(key, strlen(key));
	info = server->http ? MHD_get_daemon_info(server->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return say(-EIO, "libmicrohttpd does not start%s",
			   certificate ? ": look at the certificate and its key" : "");
	r = event_add(&server->loop, &server->on_http, info->epoll_fd, EPOLLIN, on_http);
	return r ? r : connections_open(server);
}

static void on_signal(struct event_source *source, uint32_t events)
{
	struct server *server = container_of(source, struct server, on_signal);
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
	return server->signals < 0
		       ? -errno
		       : event_add(&server->loop, &server->on_signal, server->signals, EPOLLIN, on_signal);
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

static void on_streams(struct event_source *source, uint32_t events)
{
	container_of(source, struct server, on_streams)->streams_ready = true;
}

static bool others_ask(const struct server *server, const struct tenant *streaming, double now)
{
	for (const struct tenant *tenant = server->tenants; tenant; tenant = tenant->next)
		if (tenant != streaming && tenant->asked + ASKED_SECONDS > now)
			return true;
	return false;
}

void server_streamed(const struct line *line)
{
	struct server *server = line->tenant->server;

	server->others_ask = server->others_ask || others_ask(server, line->tenant, server_now());
}

/* One batch of a line after another: the loop takes turns between those that are ready. If other tenants ask,
 * streams get no more than half of the time, or the kernel would count this process among those that can wait. */
static void streams_turn(struct server *server)
{
	double began = server_now(), now;
	struct slice slice = {.until = event_now() + STREAMS_US, .things = SIZE_MAX, .few = SIZE_MAX};

	server->streams_ready = server->others_ask = false;
	(void)event_wait(&server->streams_loop, 0);
	event_dispatch(&server->streams_loop, &slice);
	if (server->others_ask) {
		now = server_now();
		server->streams_rest = now + (now - began);
		event_change(&server->loop, &server->on_streams, 0);
	}
}

static void streams_look(struct server *server, double now)
{
	if (server->streams_rest > 0 && server->streams_rest <= now) {
		server->streams_rest = 0;
		event_change(&server->loop, &server->on_streams, EPOLLIN);
	}
}

static int origins_open(const struct server *server)
{
	const char *wrong = origins_wrong(server->options->origins);

	return wrong ? say(-EINVAL,
			   "--origins: expected SCHEME://HOST or SCHEME://HOST:PORT, with commas between, got "
			   "\"%s\"",
			   wrong)
		     : 0;
}

static int server_open(struct server *server)
{
	int r;

	if (event_loop_init(&server->loop) || event_loop_init(&server->streams_loop) || sodium_init() < 0)
		return say(-EIO, "cannot begin: %s", strerror(errno));
	r = origins_open(server);
	if (!r)
		r = signals_open(server);
	if (!r)
		r = event_add(&server->loop, &server->on_streams, server->streams_loop.epoll_fd, EPOLLIN,
			      on_streams);
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
		exchange_check_flow(exchange, now);
		if (exchange->alarm > 0 && exchange->alarm <= now && !exchange->gone) {
			exchange->alarm = 0;
			exchange->on_alarm(exchange);
		}
	}
	for (struct tenant *tenant = server->tenants; tenant; tenant = tenant->next)
		if (tenant->streams.held > 0 && tenant->streams.held <= now)
			line_resume(&tenant->streams);
	connections_tick(server, now);
	(void)tenants_reload(server);
	/* Before revoked tenants are freed. */
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
	if (server->streams_rest > 0)
		left = fmin(left, (server->streams_rest - server_now()) * 1e3);
	if (MHD_get_timeout(server->http, &most) == MHD_YES)
		left = fmin(left, (double)most);
	return (int)ceil(fmax(left, 0));
}

static int server_round(struct server *server)
{
	int r = event_round(&server->loop, wait_ms(server));

	if (r)
		return r;
	if (server_now() >= server->next_tick)
		tick(server, server_now());
	(void)MHD_run(server->http);
	if (server->streams_ready)
		streams_turn(server);
	streams_look(server, server_now());
	return 0;
}

/* Answers that are complete are sent; everything else breaks off. */
static void server_end(struct server *server)
{
	double until = server_now() + ENDING_SECONDS;

	event_remove(&server->loop, &server->on_listener);
	server->listener = fd_close(server->listener);
	server->deaf = false;
	for (struct exchange *exchange = server->exchanges; exchange; exchange = exchange->next)
		if (!exchange->queued || exchange->streaming)
			exchange_drop(exchange);
	while (server->exchanges && server_now() < until)
		if (server_round(server))
			break;
	/* None may be suspended when it stops. */
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
	event_loop_deinit(&server->streams_loop);
	event_loop_deinit(&server->loop);
}

int serve_run(const struct serve_options *options)
{
	struct server server = {.options = options,
				.loop.epoll_fd = -1,
				.streams_loop.epoll_fd = -1,
				.signals = -1,
				.listener = -1,
				.local = -1,
				.on_listener = EVENT_SOURCE_NONE};
	int r;

	/* Memory that one round needs, the next one needs again. */
	(void)mallopt(M_TRIM_THRESHOLD, TRIM);
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
