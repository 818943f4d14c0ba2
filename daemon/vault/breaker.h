/* The breaker: it notes what the router has in hand, in memory that outlives it, and counts the deaths of
 * routers. If routers die again and again of one thing, that thing is ended or refused by name, so that
 * everything else goes on.
 *
 * A thing is noted with a few stores before it is handled, and stays noted until its round is settled. If the
 * last router died by itself, or stood still, the new router counts that against the thing. A thing that is
 * handled and settled is cleared of suspicion. For a while after a death, a round is of one thing, so that the
 * reason of another death is known. */
#pragma once

#include "keeper/keeper.h"

struct wire_schema;

/* The kinds of things that may be in hand, and the meaning of their @whose and @number. */
enum in_hand {
	BLAME_NOTHING,
	BLAME_INTERPRETER, /* the family's; its serial */
	BLAME_SESSION,	   /* a timer of it: the family's; its own in the family */
	BLAME_FAMILY,	   /* the family's; 0 */
	BLAME_REVIVAL,	   /* the family's; 0 */
	BLAME_RECORD,	   /* 0; where it lies in the ledger of promises */
	BLAME_TEMPLATE,	   /* the digest of the profile's name; its user and one, or 0 */
	BLAME_BUILD,	   /* of packages: 0; the digest of its key */
	BLAME_FRAME,	   /* a request that has not been read: the uid; its size */
	BLAME_REQUEST,	   /* the uid; the digest of type, session and key */
	_HAND_N,
};

/* The part of a thing, if it has several: the success of one says nothing of another. */
enum blame_turn {
	TURN_CHANNEL,
	TURN_STDOUT,
	TURN_STDERR,
	TURN_DEATH,
	TURN_DEADLINE,
	TURN_IDLE,
	TURN_HARD,
	TURN_ALIVE,
	TURN_MEASURE,
	TURN_TRANSFER,
	TURN_COPY,
	TURN_PATIENCE,
	TURN_QUOTA,
	TURN_REFILL,
	TURN_READ,
	TURN_REVIVE,
	TURN_RETRY,
	TURN_CALL,
	_TURN_N,
};

struct thing {
	uint32_t kind, turn;
	uint64_t whose, number;
};

struct breaker_page;

struct breaker {
	volatile struct breaker_page *page;
	int fd; /* -1: the page ends with us */
};

/* @fd: the page of the last router, which becomes ours; -1: there is none. The death of that router is counted.
 * Without memory for a page nothing is counted. */
void breaker_open(struct breaker *breaker, int fd, enum router_end end);
void breaker_close(struct breaker *breaker);

/* The next thing is in hand; its handler will name it. */
void breaker_take(struct breaker *breaker);
/* Name the thing in hand. */
void breaker_name(struct breaker *breaker, const struct thing *thing);
/* The things that were handled are being settled. */
void breaker_settle(struct breaker *breaker);
/* Everything is settled: the things that were handled are above suspicion. */
void breaker_put_down(struct breaker *breaker);

/* Whether so many routers died of it that it must not be tried again. The second function: of any turn of it. */
bool breaker_is_open(const struct breaker *breaker, const struct thing *thing);
bool breaker_is_open_for(const struct breaker *breaker, enum in_hand kind, uint64_t whose, uint64_t number);
/* All things of that kind have been ended, and cannot come again. */
void breaker_forget(struct breaker *breaker, enum in_hand kind);
/* Whether a round must be of one thing. */
bool breaker_is_careful(const struct breaker *breaker);

/* Two numbers that outlive routers, for fault.c. */
volatile uint64_t *breaker_faults(const struct breaker *breaker);

/* The digest of a name: start with BREAKER_DIGEST, go on with what it has returned. */
#define BREAKER_DIGEST 0xcbf29ce484222325ULL
uint64_t breaker_digest(uint64_t digest, struct bytes data);

/* ---- what handlers take in hand: each says first what it handles ---- */

/* A handler begins, and a fault may be made here: at @group and the name of @thing's turn, on behalf of @of. */
void blame_note(struct breaker *breaker, const struct thing *thing, const char *group, struct bytes of);

/* What is left of a family is read; it is brought back. */
void blame_revival(struct breaker *breaker, uint64_t family, enum blame_turn turn);
/* Whether a family is not to be brought back. */
bool blame_revival_is_open(const struct breaker *breaker, uint64_t family);
/* A request, before it is looked at; and when it is known what it is. Return whether it is one that is not tried
 * again. */
bool blame_frame(struct breaker *breaker, uint64_t uid, size_t size);
bool blame_request(struct breaker *breaker, uint64_t uid, const struct wire_schema *schema, struct bytes session,
		   struct bytes key);

/* What a client is told of it. */
#define BLAME_REFUSAL "laird's router died of it again and again: this request is not tried any more"
