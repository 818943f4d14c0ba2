/* ZMTP 3, the protocol of ZeroMQ on a stream (RFC 23 and 37), as far as the router needs it: the NULL mechanism,
 * a ROUTER's side, messages of one part, heartbeats. It only looks at bytes: it neither reads nor keeps any. */
#pragma once

#include "proto/base.h"

#define ZMTP_GREETING_SIZE 64
/* The most that may stand before a message: the empty part for a REQ socket, and the header. */
#define ZMTP_HEADER_MAX 11
/* The largest command, and the largest answer to one. */
#define ZMTP_COMMAND_MAX 4096
#define ZMTP_ANSWER_MAX 64

enum zmtp_phase { ZMTP_GREETING, ZMTP_HANDSHAKE, ZMTP_OPEN };

/* The reading side of one connection. Zeroes are its beginning, but for @message_max. */
struct zmtp {
	enum zmtp_phase phase;
	uint64_t message_max; /* bytes of a message, or of a part of one */
	bool delimited;	      /* the peer is a REQ socket: an empty part stands before each message, both ways */
	bool delimiter;	      /* and this one's has been read */
	bool skipping;	      /* the message at hand has several parts: it is passed over */
	bool more;	      /* more parts follow the one that is being passed over */
	uint64_t skip;	      /* bytes of that part that are still to come */
};

enum zmtp_kind {
	ZMTP_GREETED, /* the peer speaks ZMTP 3: it is to be told READY */
	ZMTP_READY,   /* the handshake is over */
	ZMTP_PING,    /* @data: the context, to be sent back; @ttl */
	ZMTP_MESSAGE, /* @data: the whole of it */
	ZMTP_PARTS,   /* a message of several parts, which has been passed over */
};

/* What was found. @data points into the input. */
struct zmtp_item {
	enum zmtp_kind kind;
	struct bytes data;
	uint16_t ttl; /* tenths of a second after which the peer wants to be forgotten if it is silent; 0: never */
};

enum {
	_ZMTP_E_SUCCESS,
	ZMTP_E_MORE,   /* the next item is not whole */
	ZMTP_E_BROKEN, /* this is not what ZeroMQ says */
};

/* Look for one item at the beginning of @input. Afterwards @usedp bytes of @input are done with; an item's data
 * lie in these. With ZMTP_E_MORE, @wantedp is how many bytes from there the next item takes, if that is known:
 * more than there are. With ZMTP_E_BROKEN, @whyp is a static sentence. */
int zmtp_next(struct zmtp *zmtp, struct bytes input, struct zmtp_item *item, size_t *usedp, uint64_t *wantedp,
	      const char **whyp);

/* ---- writing; each function returns how many bytes of @to it has used ---- */

size_t zmtp_put_greeting(char to[static ZMTP_GREETING_SIZE]);
size_t zmtp_put_ready(char to[static ZMTP_ANSWER_MAX]);
/* Why the handshake ends here. */
size_t zmtp_put_error(char to[static ZMTP_ANSWER_MAX], const char *why);
/* @context: as it was in the PING. */
size_t zmtp_put_pong(char to[static ZMTP_ANSWER_MAX], struct bytes context);
/* The header before the @size bytes of a message to this peer. */
size_t zmtp_put_header(const struct zmtp *zmtp, char to[static ZMTP_HEADER_MAX], uint64_t size);
