/* All clients: where each is, and how a message gets there. It knows no promises: whoever answers a request calls
 * client.h. */
#pragma once

#include "front/front.h"
#include "proto/event.h"

#include "proto/message.h"

#include <sys/types.h>

struct promise;

/* Where an answer goes. Small, copied into every cell and every waiting request. */
struct address {
	int fd;		     /* of the connection */
	uint64_t connection; /* its serial; 0: somebody whom a former router knew */
	uid_t uid;
	uint64_t id;		 /* of the request */
	struct promise *promise; /* NULL, or the one that has the askers: see client.h */
};

enum {
	_CLIENT_E_SUCCESS,
	CLIENT_E_WAITS, /* queued: the client does not read as fast as it is written to */
	CLIENT_E_GONE,	/* nobody there any more */
};

struct clients {
	struct front front;
	uint64_t n_errors;    /* requests answered with one */
	char *reserve;	      /* memory for the error that there is none */
	const char *settings; /* the file that is in force; the configuration's */
};

/* Before its front is there. */
void clients_init(struct clients *clients);
void clients_deinit(struct clients *clients);

/* None of these looks at the promise of an address. */

/* Encode and send an event or an answer, when the round is settled: everything it says must be written down first.
 * Returns 0, CLIENT_E_WAITS, CLIENT_E_GONE; or -ENOMEM, with nothing sent. */
int clients_say(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		const void *message);
/* The same for a message that is encoded already. On success @text is taken, and empty. */
int clients_post(struct clients *clients, const struct address *to, struct text *text);
/* The answer is an error. Without memory even for that, the connection ends. */
void clients_refuse(struct clients *clients, const struct address *to, const char *code, const char *sentence);
/* No answer is possible: the connection ends, and the client may ask again on another. */
void clients_hang_up(struct clients *clients, const struct address *to);
/* There is memory for one small answer. */
void clients_use_reserve(struct clients *clients);

/* The round is safe: let the messages go. */
void clients_settle(struct clients *clients);

/* The groups that it was in when it connected; *@groupsp is the caller's to free. Returns how many, or -errno. */
int clients_groups(const struct clients *clients, const struct address *to, gid_t **groupsp);
/* Whether its connection is there. */
bool clients_there(const struct clients *clients, const struct address *to);
/* Whether so much waits for this client that cells which stream to it must pause. */
bool clients_wait(const struct clients *clients, const struct address *to);

bool address_same_client(const struct address *a, const struct address *b);
bool address_same_request(const struct address *a, const struct address *b);
