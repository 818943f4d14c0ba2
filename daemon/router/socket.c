/* The socket of the clients: what comes is a request of somebody whom the kernel has named, and who streamed to a
 * client that has caught up goes on. */
#include "router.h"

#include "base/log.h"
#include "request/request.h"

static void on_request(struct front *front, const struct connection *connection, struct bytes data)
{
	struct router *router = container_of(front, struct router, clients.front);
	struct address from = {
		.fd = connection->fd, .connection = connection->serial, .uid = connection->user->uid};

	request_receive(&router->sessions, &from, data);
}

int router_listen(struct router *router)
{
	struct front *front = &router->clients.front;
	int r;

	front_init(front, &router->loop, &router->users, getppid(), router->config->frame_size, on_request);
	r = front_listen(front, router->listener);
	if (r)
		log_error(NULL, "cannot listen on %s: %s", router->socket_path, strerror(-r));
	return r;
}

void router_resume_sessions(struct router *router)
{
	struct front *front = &router->clients.front;
	struct session *session;

	if (!front->drained)
		return;
	front->drained = false;
	list_for_each (session, &router->sessions.all, node)
		session_resume(session);
}

void router_hang_up(struct router *router)
{
	clients_deinit(&router->clients);
	fd_closep(&router->listener);
}
