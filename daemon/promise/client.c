/* Answers to clients. Everything that an answer says must be written down first, so it is held until the round
 * is settled. */
#include "client.h"

#include "base/log.h"
#include "promise.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

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

bool client_waits(const struct clients *clients, const struct address *to)
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
			client_hang_up(clients, &held->to);
		}
		held_free(held);
	}
	clients->held_size = 0;
	if (!clients->reserve)
		clients->reserve = malloc(RESERVE);
	front_flush(&clients->front);
}

static bool is_event(const struct wire_schema *schema)
{
	return schema == &stdout_event_schema || schema == &stderr_event_schema || schema == &ask_event_schema ||
	       schema == &display_event_schema || schema == &alive_event_schema;
}

static int buffer_send(struct clients *clients, const struct address *to, msgpack_sbuffer *buffer, bool hold)
{
	if (to->connection == 0)
		return CLIENT_E_GONE;
	return hold ? message_hold(clients, to, buffer) : message_send(clients, to, buffer);
}

int client_answer(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		  const void *message)
{
	msgpack_sbuffer buffer;
	int r;

	msgpack_sbuffer_init(&buffer);
	r = wire_encode(&buffer, schema, message);
	if (!r && to->promise)
		promise_answer(to->promise, schema, &buffer);
	else if (!r)
		r = buffer_send(clients, to, &buffer, !is_event(schema));
	msgpack_sbuffer_destroy(&buffer);
	return r;
}

/* There is no memory for an answer. An error takes little. If there is no memory even for that, the connections
 * of all who wait end. */
static void answer_fail(struct clients *clients, const struct address *to)
{
	const struct error_reply reply = {
		.id = to->id, .code = BYTES("internal"), .message = BYTES("out of memory to answer this")};

	freep(&clients->reserve);
	clients->n_errors++;
	if (client_answer(clients, to, &error_reply_schema, &reply) >= 0)
		return;
	if (to->promise)
		promise_hang_up(to->promise);
	else
		client_hang_up(clients, to);
}

void client_hang_up(struct clients *clients, const struct address *to)
{
	front_hang_up(&clients->front, to->fd, to->connection);
}

int client_send(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		const void *message)
{
	int r = client_answer(clients, to, schema, message);

	if (r < 0)
		log_error(NULL, "cannot send a %s for request %" PRIu64 ": %s", schema->type, to->id, strerror(-r));
	if (r < 0 && !is_event(schema))
		answer_fail(clients, to);
	return r;
}

int client_post(struct clients *clients, const struct address *to, msgpack_sbuffer *buffer)
{
	return buffer_send(clients, to, buffer, true);
}

static int error_send(struct clients *clients, const struct address *to, const char *code, struct bytes ended,
		      const char *format, va_list args) _printf_(5, 0);

static int error_send(struct clients *clients, const struct address *to, const char *code, struct bytes ended,
		      const char *format, va_list args)
{
	struct error_reply reply = {.id = to->id, .code = bytes_of(code), .ended = ended};
	char sentence[512];

	vsnprintf(sentence, sizeof(sentence), format, args);
	reply.message = bytes_of(sentence);
	clients->n_errors++;
	return client_send(clients, to, &error_reply_schema, &reply);
}

int client_error(struct clients *clients, const struct address *to, const char *code, const char *format, ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = error_send(clients, to, code, (struct bytes){.data = NULL}, format, args);
	va_end(args);
	return r;
}

int client_gone(struct clients *clients, const struct address *to, const char *code, struct bytes ended,
		const char *format, ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = error_send(clients, to, code, ended, format, args);
	va_end(args);
	return r;
}
