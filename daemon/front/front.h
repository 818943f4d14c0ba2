/* The socket that clients connect to. The router owns it and speaks ZMTP itself. An address is a connection,
 * which no client can choose or guess. The kernel says which user a client is. What is kept for a client is
 * charged to its user before it takes memory. Requests are handled one at a time, by turns between users. */
#pragma once

#include "admission.h"
#include "connection.h"

enum front_refusal {
	FRONT_REFUSED, /* a connection, at once */
	FRONT_CLOSED,  /* a connection, for what came on it */
	FRONT_DROPPED, /* one message */
	_FRONT_REFUSAL_N,
};

struct front_limits {
	uint64_t connections_per_uid;
	uint64_t memory; /* that the router may use; 0: any */
};

struct front {
	struct event_loop *loop;
	struct admission admission;
	struct event_source listener;
	struct users *users;
	struct connection **table; /* by descriptor */
	size_t table_size, n_connections, n_connections_max;
	uint64_t connections_per_uid, message_max;
	struct graveyard dead;
	struct list due; /* those to which something is to be sent */
	struct timer watch;
	bool drained; /* somebody who lagged has caught up since this was last cleared */
	bool room;    /* there may be room for those that starve */
	uint64_t last_serial;
	uint64_t n_refused[_FRONT_REFUSAL_N];
	uint64_t n_unread; /* messages for those who do not read */
	uint64_t queued;   /* bytes of messages since the last front_flush */
	/* One request. @data is valid until this returns. */
	void (*on_request)(struct front *front, const struct connection *connection, struct bytes data);
};

enum {
	_FRONT_E_SUCCESS,
	FRONT_E_EMPTY, /* no request waits */
	FRONT_E_WAITS, /* queued, but the client does not read as fast as it is written to */
	FRONT_E_GONE,  /* nobody there any more */
};

/* @users: those who pay. @keeper: its descendants are in cages. @message_max: bytes. */
void front_init(struct front *front, struct event_loop *loop, struct users *users, pid_t keeper,
		uint64_t message_max,
		void (*on_request)(struct front *front, const struct connection *connection, struct bytes data));
/* Send what can be sent within a moment, and close everything. Harmless if all zeroes. */
void front_deinit(struct front *front);
void front_limit(struct front *front, const struct front_limits *limits);
/* Accept connections from @listener, which stays the caller's. Returns 0 or -errno. */
int front_listen(struct front *front, int listener);

/* Handle the request whose turn it is. Returns 0 or FRONT_E_EMPTY. */
int front_serve(struct front *front);
/* Whether one waits. */
bool front_pending(const struct front *front);

/* Queue a message for the client on @fd, if it is still connection @serial. Nothing but front_flush sends it. If it
 * is queued, @text is the front's from now on, and empty for the caller. Returns 0, FRONT_E_WAITS, FRONT_E_GONE or
 * -ENOMEM. */
int front_send(struct front *front, int fd, uint64_t serial, struct text *text);
/* Close that connection, if it is still there, because a message for it could not be queued. It takes no memory. */
void front_hang_up(struct front *front, int fd, uint64_t serial);
/* Whether it is still there. */
bool front_has(const struct front *front, int fd, uint64_t serial);
/* Whether cells that stream to it must pause. */
bool front_lags(const struct front *front, int fd, uint64_t serial);
/* Once a round, when the queued messages may be sent: send them, and wake connections that waited for room. */
void front_flush(struct front *front);
/* Connections and messages that were refused or dropped so far. */
uint64_t front_refusals(const struct front *front);

/* ---- for connections ---- */

void front_send_later(struct front *front, struct connection *connection);
/* Add it to the connections that are checked, if it must be. */
void front_watch(struct front *front, struct connection *connection);
void front_forget(struct front *front, struct connection *connection);
/* Count a refusal; log the first of its kind. @why: a static sentence. */
void front_count_refused(struct front *front, enum front_refusal refusal, const char *why);
void front_count_unread(struct front *front, uid_t uid, size_t n);
