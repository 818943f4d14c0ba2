/* What is on its way to clients. Everything that an answer says must be written down first, so it is held until the
 * round is settled. */
#include "clients.h"

#include "base/log.h"

#include <inttypes.h>

/* Freed to have memory for errors that say that there is none; allocated again at the end of the round. */
#define RESERVE ((size_t)64 << 10)

/* An answer of this round. */
struct held {
	struct list node;
	struct address to;
	msgpack_sbuffer message;
};

void clients_init(struct clients *clients)
{
	*clients = (struct clients){.n_errors = 0};
	list_init(&clients->held);
}

static void held_free(struct held *held)
{
	list_remove(&held->node);
	msgpack_sbuffer_destroy(&held->message);
	free(held);
}

void clients_deinit(struct clients *clients)
{
	struct held *held;

	if (!clients->held.next)
		return;
	list_for_each (held, &clients->held, node)
		held_free(held);
	freep(&clients->reserve);
	front_deinit(&clients->front);
}

bool address_same_client(const struct address *a, const struct address *b)
{
	return a->connection == b->connection;
}

bool address_same_request(const struct address *a, const struct address *b)
{
	return a->id == b->id && address_same_client(a, b);
}

bool clients_wait(const struct clients *clients, const struct address *to)
{
	return front_lags(&clients->front, to->fd, to->connection);
}

/* Takes the content of @buffer. */
static int message_send(struct clients *clients, const struct address *to, msgpack_sbuffer *buffer)
{
	switch (front_send(&clients->front, to->fd, to->connection, buffer)) {
	case 0:
		return 0;
	case FRONT_E_WAITS:
		return CLIENT_E_WAITS;
	case FRONT_E_GONE:
		return CLIENT_E_GONE;
	default:
		return -ENOMEM;
	}
}

/* Takes the content of @buffer. */
static int message_hold(struct clients *clients, const struct address *to, msgpack_sbuffer *buffer)
{
	struct held *held = malloc(sizeof(*held));

	if (!held)
		return -ENOMEM;
	*held = (struct held){.to = *to, .message = *buffer};
	msgpack_sbuffer_init(buffer);
	list_init(&held->node);
	list_append(&clients->held, &held->node);
	clients->held_size += held->message.size;
	return 0;
}

void clients_settle(struct clients *clients)
{
	struct held *held;

	list_for_each (held, &clients->held, node) {
		int r = message_send(clients, &held->to, &held->message);

		if (r < 0) {
			log_error(NULL, "cannot answer request %" PRIu64 ": %s", held->to.id, strerror(-r));
			clients_hang_up(clients, &held->to);
		}
		held_free(held);
	}
	clients->held_size = 0;
	if (!clients->reserve)
		clients->reserve = malloc(RESERVE);
	front_flush(&clients->front);
}

int clients_event(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		  const void *event)
{
	msgpack_sbuffer buffer;
	int r;

	if (to->connection == 0)
		return CLIENT_E_GONE;
	msgpack_sbuffer_init(&buffer);
	r = wire_encode(&buffer, schema, event);
	if (!r)
		r = message_send(clients, to, &buffer);
	msgpack_sbuffer_destroy(&buffer);
	if (r < 0)
		log_error(NULL, "cannot send a %s for request %" PRIu64 ": %s", schema->type, to->id, strerror(-r));
	return r;
}

int clients_post(struct clients *clients, const struct address *to, msgpack_sbuffer *buffer)
{
	return to->connection == 0 ? CLIENT_E_GONE : message_hold(clients, to, buffer);
}

int clients_answer(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		   const void *answer)
{
	msgpack_sbuffer buffer;
	int r;

	msgpack_sbuffer_init(&buffer);
	r = wire_encode(&buffer, schema, answer);
	if (!r)
		r = clients_post(clients, to, &buffer);
	msgpack_sbuffer_destroy(&buffer);
	return r;
}

void clients_use_reserve(struct clients *clients)
{
	freep(&clients->reserve);
}

void clients_refuse(struct clients *clients, const struct address *to, const char *code, const char *sentence)
{
	const struct error_reply reply = {.id = to->id, .code = bytes_of(code), .message = bytes_of(sentence)};
	int r = clients_answer(clients, to, &error_reply_schema, &reply);

	clients->n_errors++;
	if (r < 0) {
		clients_use_reserve(clients);
		r = clients_answer(clients, to, &error_reply_schema, &reply);
	}
	if (r < 0)
		clients_hang_up(clients, to);
}

void clients_hang_up(struct clients *clients, const struct address *to)
{
	front_hang_up(&clients->front, to->fd, to->connection);
}
