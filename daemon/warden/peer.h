/* The router's end of a link (proto/link.h) to a warden or an interpreter. Messages are taken out of the socket,
 * and messages to the peer are sent, only when the round is settled. So a router that dies before that has heard
 * and said nothing, and the next one does it all again. */
#pragma once

#include "proto/event.h"

#include "proto/link.h"
#include "proto/wire.h"

/* Before the header of a letter is believed. */
#define PEER_FDS_MAX 4

struct peer {
	struct list node; /* among those that this round concerns */
	struct list *due; /* these */
	struct event_loop *loop;
	struct event_source source; /* its fd: -1 once the peer is not listened to any more */
	int fd;
	int letters;		 /* the file the peer's letters lie in; -1: it sends none. Not ours */
	uint64_t sent, received; /* the last numbers */
	bool paused;		 /* nothing is to be heard for now */
	struct timer rest;	 /* nor until then */
	struct timer retry;	 /* until then there is no room for what is to be sent */
	bool held;		 /* nothing is to be sent for now */
	bool handled;		 /* a message of this round is still in the socket */
	struct list messages;	 /* to be sent */
	bool hurried;		 /* its letters wait for nobody */
	char *letter;		 /* of this round */
	uint64_t letter_at;	 /* where in its file that lies */
	uint32_t letter_size;
};

/* The subject is the number of a session, whose task's file is sent. */
#define SUBJECT_TASK (1ULL << 62)

/* What waits to be sent. The descriptors are its own. */
struct peer_message {
	struct list node;
	uint64_t number;
	uint64_t subject; /* the interpreter whose descriptors are sent; with SUBJECT_TASK the session */
	size_t n_fds;
	int fds[PEER_FDS_MAX];
	msgpack_sbuffer datagram; /* room for a header, and the frame */
};

enum {
	_PEER_E_SUCCESS,
	PEER_E_EMPTY, /* nothing, or nothing more in this round */
	PEER_E_EOF,
	PEER_E_BAD, /* not the next datagram of a link, or too large a letter */
};

/* @due: see settle. @fd is the peer's from now on. */
void peer_init(struct peer *peer, struct event_loop *loop, struct list *due, int fd, int letters);
/* Close it and forget what was to be sent. Idempotent. */
void peer_deinit(struct peer *peer);

/* Call @fn when there is a message. Returns 0 or -errno. */
int peer_listen(struct peer *peer, void (*fn)(struct event_source *source, uint32_t events));
void peer_ignore(struct peer *peer);
/* Leave its messages in the socket, or read them again. Its end is reported in any case. */
void peer_pause(struct peer *peer, bool paused);
/* The same for @us microseconds; 0: no longer. */
void peer_rest(struct peer *peer, uint64_t us);
/* Nothing of what it has said waits any longer: it is dead. */
void peer_hurry(struct peer *peer);

/* Keep what is to be sent, or no longer. */
void peer_hold(struct peer *peer, bool held);

/* Look at the next frame, at most one a round. It is valid until the round is settled. Returns 0 or PEER_E_*. */
int peer_hear(struct peer *peer, struct bytes *frame);
/* It was not handled after all: it comes again. */
void peer_push_back(struct peer *peer);
/* Whether a message waits that has not been handled. */
bool peer_pending(const struct peer *peer);

/* Queue a message until the round is settled. @fds become the message's, also if it fails. Returns 0 or -ENOMEM. */
int peer_say(struct peer *peer, const struct wire_schema *schema, const void *message, uint64_t subject, int *fds,
	     size_t n_fds);

/* Queue a message of a former router, which may not have sent it: once more under the same number. The rest as
 * above. */
int peer_repeat(struct peer *peer, uint64_t number, struct bytes datagram, uint64_t subject, int *fds,
		size_t n_fds);

/* It can take what it did not take before. */
void peer_settle_later(struct peer *peer);

/* The round is written down: take out the messages that were handled, send the queued ones. If the socket is
 * full, they stay queued. */
void peer_settle(struct peer *peer);
void peers_settle(struct list *due);
