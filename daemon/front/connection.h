/* One client's connection: it turns bytes into requests and answers into bytes. What it holds is charged to its
 * user. */
#pragma once

#include "base/graveyard.h"
#include "base/text.h"
#include "proto/event.h"
#include "user.h"
#include "zmtp.h"

#include "proto/wire.h"

struct front;

/* A message on its way to the client. */
struct parcel {
	struct list node;
	uint8_t header_size;
	char header[ZMTP_ANSWER_MAX];
	struct text body;  /* empty if the header is all */
	size_t size, sent; /* of header and body */
};

struct connection {
	struct list turn; /* in its user: ready, starved or resting; or in nothing */
	struct list due;  /* in the front, in a round in which something is to be sent */
	struct grave grave;
	struct front *front;
	struct user *user;
	uint64_t serial; /* given once in a router's life */
	int fd;
	struct event_source source;
	struct zmtp zmtp;

	char *data; /* what was read and is not done with: from start to end. NULL: nothing */
	size_t start, end, size;
	uint64_t reserved;    /* of its user's, for @data */
	struct bytes request; /* in @data, whole, to be handled when its turn comes; or data is NULL */
	bool starved;	      /* waits for room for a message */
	uint64_t wanted;      /* bytes of that room */

	struct list parcels;
	uint64_t waiting; /* bytes of these */
	bool blocked;	  /* the socket takes no more for now */
	bool lags;	  /* so much waits that those who stream to it pause */
	bool deaf;	  /* its client reads no more, but what it sent before is still handled */

	uint64_t heard; /* event_now() when bytes last came; before the handshake is over: when it began */
	uint64_t told;	/* when bytes last went, or began to wait */
	uint64_t ttl;	/* microseconds of silence after which it wants to be forgotten; 0: never */
};

/* Take over @fd, which is connected. Returns 0 or -errno, and then @fd is closed. */
int connection_new(struct connection **connectionp, struct front *front, struct user *user, int fd,
		   uint64_t serial);
/* From now on nothing is read from it or sent on it. It is freed between two rounds. */
void connection_close(struct connection *connection);

/* Its request has been handled: go on to the next. */
void connection_proceed(struct connection *connection);
/* There may be room for the message that it waits to read. Returns false if there is not. */
bool connection_feed(struct connection *connection);

/* Queue a message. @text is the connection's from now on, and empty for the caller, unless -ENOMEM is returned. */
int connection_send(struct connection *connection, struct text *text);
/* Send what the socket takes now. */
void connection_flush(struct connection *connection);

/* Whether it must be checked again later, since something on it must not take too long. */
bool connection_is_watched(const struct connection *connection);
/* Close it if something on it has taken too long. */
void connection_check(struct connection *connection, uint64_t now);
