/* Messages to clients: encoded, and given to the front. */
#include "clients.h"

#include "base/log.h"

#include <inttypes.h>

/* Freed to have memory for errors that say that there is none; allocated again at the end of the round. */
#define RESERVE ((size_t)64 << 10)

void clients_init(struct clients *clients)
{
	*clients = (struct clients){.n_errors = 0};
}

void clients_deinit(struct clients *clients)
{
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

bool clients_there(const struct clients *clients, const struct address *to)
{
	return front_has(&clients->front, to->fd, to->connection);
}

int clients_groups(const struct clients *clients, const struct address *to, gid_t **groupsp)
{
	return clients_there(clients, to) ? admission_groups(groupsp, to->fd) : -ENOTCONN;
}

int clients_post(struct clients *clients, const struct address *to, struct text *text)
{
	if (to->connection == 0)
		return CLIENT_E_GONE;
	switch (front_send(&clients->front, to->fd, to->connection, text)) {
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

int clients_say(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		const void *message)
{
	struct text text = {.bulk = NULL};
	int r;

	if (to->connection == 0)
		return CLIENT_E_GONE;
	r = wire_encode(&text.encoded, schema, message);
	if (!r)
		r = clients_post(clients, to, &text);
	text_free(&text);
	if (r < 0)
		log_error(NULL, "cannot send a %s for request %" PRIu64 ": %s", schema->type, to->id, strerror(-r));
	return r;
}

void clients_use_reserve(struct clients *clients)
{
	freep(&clients->reserve);
}

void clients_refuse(struct clients *clients, const struct address *to, const char *code, const char *sentence)
{
	const struct error_reply reply = {.id = to->id, .code = bytes_of(code), .message = bytes_of(sentence)};
	int r = clients_say(clients, to, &error_reply_schema, &reply);

	clients->n_errors++;
	if (r < 0) {
		clients_use_reserve(clients);
		r = clients_say(clients, to, &error_reply_schema, &reply);
	}
	if (r < 0)
		clients_hang_up(clients, to);
}

void clients_hang_up(struct clients *clients, const struct address *to)
{
	front_hang_up(&clients->front, to->fd, to->connection);
}

void clients_settle(struct clients *clients)
{
	if (!clients->reserve)
		clients->reserve = malloc(RESERVE);
	front_flush(&clients->front);
}
