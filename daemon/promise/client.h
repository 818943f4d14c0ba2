/* The client side of the router: who asked, and how to answer. */
#pragma once

#include "base/event.h"
#include "front/front.h"

#include "proto/message.h"

#include <sys/types.h>

struct promise;
struct router;

/* Where an answer goes. Small, copied into every cell and every waiting request. */
struct address {
	int fd;		     /* of the connection */
	uint64_t connection; /* its serial; 0: somebody whom a former router knew */
	uid_t uid;
	uint64_t id;		 /* of the request */
	struct promise *promise; /* NULL, or who passes the answer on instead: see promise.h */
};

enum {
	_CLIENT_E_SUCCESS,
	CLIENT_E_WAITS, /* queued: the client does not read as fast as it is written to */
	CLIENT_E_GONE,	/* nobody there any more */
};

struct clients {
	struct front front;
	struct list held;  /* answers, until the round is safe */
	size_t held_size;  /* of these */
	uint64_t n_errors; /* requests answered with one */
	char *reserve;	   /* memory for the error that there is none */
};

/* Before its front is there. */
void clients_init(struct clients *clients);
void clients_deinit(struct clients *clients);

/* Encode and send. To a promise, only its one final message may be sent. An answer is sent when the round is
 * settled, because everything it says must be written down first; an event is sent at once. Without memory for
 * an answer, an error takes its place, or else the connection ends. Returns 0; for an event CLIENT_E_WAITS or
 * CLIENT_E_GONE; or -errno. */
int client_send(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		const void *message);
/* The same, for callers that have another answer if there is no memory for this one: on -errno nothing has been
 * sent. */
int client_answer(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		  const void *message);
/* No answer is possible: its connection ends, and the client may ask again on another. */
void client_hang_up(struct clients *clients, const struct address *to);

/* Send an answer that is encoded already. On success the memory of @buffer is taken. Returns the same. */
int client_post(struct clients *clients, const struct address *to, msgpack_sbuffer *buffer);

/* The round is safe: let the answers go. */
void clients_settle(struct clients *clients);

/* Whether so much waits for this client that cells which stream to it must pause. */
bool client_waits(const struct clients *clients, const struct address *to);

/* An `error`, with the sentence printed as by printf. */
int client_error(struct clients *clients, const struct address *to, const char *code, const char *format, ...)
	_printf_(4, 5);

/* The same, with what is known of the session that is no more: @ended is a record, or absent. */
int client_gone(struct clients *clients, const struct address *to, const char *code, struct bytes ended,
		const char *format, ...) _printf_(5, 6);

/* Neither looks behind a promise. */
bool address_same_client(const struct address *a, const struct address *b);
bool address_same_request(const struct address *a, const struct address *b);
