/* The socket of the clients. What the router gets of it is one whole message of one part, and whose it is, which
 * the kernel says. */
#include "router.h"

#include "log.h"
#include "parcel.h"

#include <stdio.h>
#include <zmq.h>

#define SEND_QUEUE 256
#define RECEIVE_QUEUE 256
#define HANDSHAKE_MS 1000

static void on_drained(struct clients *clients)
{
	struct router *router = container_of(clients, struct router, clients);
	struct session *session;

	list_for_each (session, &router->sessions, node)
		session_resume(session);
}

/* "localhost:UID:GID:PID", by SO_PEERCRED. Taken from the end; no answer means nobody we would serve. */
static bool peer_uid(zmq_msg_t *message, uid_t *uidp)
{
	const char *text = zmq_msg_gets(message, "Peer-Address"), *end;
	unsigned colons = 0;
	char *stop;
	unsigned long uid;

	if (!text)
		return false;
	for (end = text + strlen(text); end > text && colons < 3; end--)
		colons += end[-1] == ':';
	if (colons < 3)
		return false;
	uid = strtoul(end + 1, &stop, 10);
	*uidp = (uid_t)uid;
	return *stop == ':';
}

static void clients_refuse(struct router *router, const char *what)
{
	/* Counted always, logged once: a flood must not fill the disk. */
	if (router->stats.refused++ == 0)
		log_warn(NULL, "a client's message was dropped: %s (further ones are only counted, see stats)",
			 what);
}

bool router_receive(struct router *router)
{
	struct address from = {0};
	zmq_msg_t identity, body;
	bool first = true, more, whole = false;

	zmq_msg_init(&identity);
	zmq_msg_init(&body);
	if (zmq_msg_recv(&identity, router->socket, ZMQ_DONTWAIT) < 0) {
		zmq_msg_close(&identity);
		return false;
	}
	for (more = zmq_msg_more(&identity); more; more = zmq_msg_more(&body), first = false) {
		if (zmq_msg_recv(&body, router->socket, 0) < 0)
			break;
		whole = first && !zmq_msg_more(&body);
	}
	from.identity_size = (uint8_t)MIN(zmq_msg_size(&identity), (size_t)IDENTITY_MAX);
	memcpy(from.identity, zmq_msg_data(&identity), from.identity_size);
	if (!whole)
		clients_refuse(router, "it has several parts");
	else if (!peer_uid(&body, &from.uid))
		clients_refuse(router, "nobody knows whose it is");
	else
		router_request(router, &from,
			       (struct bytes){.data = zmq_msg_data(&body), .size = zmq_msg_size(&body)});
	zmq_msg_close(&identity);
	zmq_msg_close(&body);
	return true;
}

int router_listen(struct router *router)
{
	const struct {
		int option, value;
	} options[] = {
		{ZMQ_LINGER, 100},	     {ZMQ_ROUTER_MANDATORY, 1},		{ZMQ_SNDHWM, SEND_QUEUE},
		{ZMQ_RCVHWM, RECEIVE_QUEUE}, {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
	};
	int64_t frame_max = (int64_t)router->config->frame_size;
	_cleanup_(freep) char *endpoint = NULL;
	int r;

	router->frame_max = router->config->frame_size;
	router->context = zmq_ctx_new();
	router->socket = router->context ? zmq_socket(router->context, ZMQ_ROUTER) : NULL;
	if (!router->socket)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (zmq_setsockopt(router->socket, options[i].option, &options[i].value, sizeof(int)) < 0)
			return -errno;
	if (zmq_setsockopt(router->socket, ZMQ_MAXMSGSIZE, &frame_max, sizeof(frame_max)) < 0)
		return -errno;
	if (zmq_setsockopt(router->socket, ZMQ_USE_FD, &router->listener, sizeof(router->listener)) < 0)
		return -errno;
	if (asprintf(&endpoint, "ipc://%s", router->socket_path) < 0)
		return -ENOMEM;
	r = zmq_bind(router->socket, endpoint) < 0 ? -errno : 0;
	if (r)
		log_error(NULL, "cannot listen on %s: %s", router->socket_path, zmq_strerror(-r));
	else
		clients_init(&router->clients, &router->loop, router->socket, on_drained);
	return r;
}

void router_hang_up(struct router *router)
{
	clients_deinit(&router->clients);
	if (router->socket)
		zmq_close(router->socket);
	if (router->context)
		zmq_ctx_term(router->context);
	if (router->clients.socket)
		parcels_deinit(&router->clients.accounts);
}
