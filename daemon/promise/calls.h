/* The calls of a cell that are out: its code has called a function of the client and has no answer yet. A call
 * stays until somebody answers it, and is offered again to each asker that comes and answers calls. */
#pragma once

#include "front/user.h"

#include "proto/message.h"

#define CALLS_MAX 1024 /* out at once */
#define FUNCTIONS_MAX 512
#define FUNCTIONS_SIZE_MAX ((size_t)1 << 20)

enum call_state {
	CALL_OUT,  /* its provider has it, or will */
	CALL_ASKS, /* somebody has to approve it first */
	CALL_HELD, /* its provider has put it aside */
};

struct call {
	struct list node;
	uint64_t number;
	enum call_state state;
	char *text;			  /* why it asks or is held, or NULL */
	uint64_t since;			  /* event_now() when it came to this router */
	struct bytes function, arguments; /* owned */
	bool written;			  /* in the ledger */
};

struct calls {
	struct list list; /* as they came */
	size_t n, size;
	struct user *user; /* who pays, twice: they are in the ledger, too */
};

/* All zeroes but for the list, which is empty at first. */
void calls_deinit(struct calls *calls);

/* Copies what it needs of @message. Returns 0; -EEXIST, -EMFILE: as many as may be are out; -EDQUOT: its user holds
 * too much; or -ENOMEM. */
int calls_add(struct call **callp, struct calls *calls, const struct call_message *message);
/* NULL if none is out with that number. */
struct call *calls_find(const struct calls *calls, uint64_t number);
void calls_remove(struct calls *calls, struct call *call);
/* From now on it is in @state, because of @why, of which a part is kept. */
void call_turn(struct call *call, enum call_state state, struct bytes why);
/* Whether one asks or is held. */
bool calls_wait(const struct calls *calls);

/* The numbers of those that are out, as an array. Returns 0 or -ENOMEM. */
int calls_numbers(const struct calls *calls, msgpack_sbuffer *buffer);

/* Whether @functions is an array of `function`, as a cell may have it. */
bool functions_valid(struct bytes functions);
/* Whether one of them is called @name. */
bool functions_have(struct bytes functions, struct bytes name);
