/* An answer goes to whom it is for, whole or not at all. */
#include "check.h"

#include "client.h"
#include "parcel.h"

#include <dlfcn.h>
#include <zmq.h>

static bool memory_is_short;

/* Only frames around others have a hint. */
int zmq_msg_init_data(zmq_msg_t *message, void *data, size_t size, zmq_free_fn *release, void *hint)
{
	int (*real)(zmq_msg_t *, void *, size_t, zmq_free_fn *, void *);

	if (memory_is_short && hint) {
		errno = ENOMEM;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "zmq_msg_init_data");
	return real(message, data, size, release, hint);
}

static void *client_connect(void *context, void *router, struct address *address, const char *name)
{
	void *socket = zmq_socket(context, ZMQ_DEALER);
	char text[8] = "";

	CHECK(zmq_setsockopt(socket, ZMQ_ROUTING_ID, name, 1) == 0 && zmq_connect(socket, "inproc://clients") == 0);
	CHECK(zmq_send(socket, "", 0, 0) == 0 && zmq_recv(router, text, sizeof(text), 0) == 1);
	CHECK(text[0] == *name && zmq_recv(router, text, sizeof(text), 0) == 0);
	*address = (struct address){.identity_size = 1, .identity = {*name}};
	return socket;
}

/* How large what it gets is; -1: nothing, or what has parts. */
static int received(void *socket)
{
	int size = zmq_recv(socket, NULL, 0, ZMQ_DONTWAIT), more = 0;
	size_t n = sizeof(more);

	CHECK(zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &n) == 0);
	return more ? -1 : size;
}

int main(void)
{
	static const char large[20000];
	void *context = zmq_ctx_new(), *router = zmq_socket(context, ZMQ_ROUTER), *a, *b;
	const struct bytes answer = {.data = large, .size = sizeof(large)};
	const struct address nobody = {.identity_size = 1, .identity = {'c'}};
	struct clients clients;
	struct address to_a, to_b;
	int mandatory = 1;

	CHECK(zmq_setsockopt(router, ZMQ_ROUTER_MANDATORY, &mandatory, sizeof(mandatory)) == 0);
	CHECK(zmq_bind(router, "inproc://clients") == 0);
	a = client_connect(context, router, &to_a, "a");
	b = client_connect(context, router, &to_b, "b");
	clients_init(&clients, NULL, router, NULL);

	memory_is_short = true;
	CHECK(client_post(&clients, &to_a, answer) == 0 && client_post(&clients, &to_b, BYTES("to b")) == 0);
	clients_settle(&clients);
	CHECK(received(a) == -1 && received(b) == 4);

	memory_is_short = false;
	CHECK(client_post(&clients, &to_a, answer) == 0 && client_post(&clients, &to_b, BYTES("b again")) == 0);
	clients_settle(&clients);
	CHECK(received(a) == sizeof(large) && received(b) == 7);

	/* Nobody there any more. */
	CHECK(client_post(&clients, &nobody, answer) == 0 && client_post(&clients, &to_b, BYTES("b")) == 0);
	clients_settle(&clients);
	CHECK(received(a) == -1 && received(b) == 1);

	clients_deinit(&clients);
	zmq_close(a);
	zmq_close(b);
	zmq_close(router);
	zmq_ctx_term(context);
	parcels_deinit(&clients.accounts);
	return check_report();
}
