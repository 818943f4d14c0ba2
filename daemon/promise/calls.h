/* The calls of a cell that wait: its code has called a function of the client and has no answer yet. A call stays
 * until somebody answers it, and is offered again to each asker that comes and answers calls, as it stands. */
#pragma once

#include "front/user.h"

#include "proto/message.h"

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
	char *text;	 /* why it asks or is held, or NULL */
	uint64_t since;	 /* event_now() when the cell called */
	uint64_t turned; /* when it came into its state; of one that is out: when its provider got it, 0: nobody has
			    it */
	uint64_t timeout;		  /* how long its provider may take, in microseconds; 0: any time */
	struct bytes function, arguments; /* owned */
	bool again;			  /* it may repeat what was done before */
	bool written, turn_written;	  /* in the ledger: all of it, what may change */
};

/* What a cell calls for packages: the router's own function. No client can offer one of this name. */
#define CALL_INSTALL "pip install"

static inline bool call_is_install(const struct call *call)
{
	return bytes_is(call->function, CALL_INSTALL);
}

struct calls {
	struct list list; /* as they came */
	size_t n, size;
	struct user *user;	    /* who pays, twice: they are in the ledger, too */
	struct function *functions; /* the cell's, by name, from its first call on; NULL before */
	size_t n_functions;
};

/* All zeroes but for the list, which is empty at first. */
void calls_deinit(struct calls *calls);

/* Copies what it needs of @message, whose number is new. Returns 0; -EDQUOT: its user holds too much; or -ENOMEM.
 */
int calls_add(struct call **callp, struct calls *calls, const struct call_message *message);
/* NULL if none of that number waits. */
struct call *calls_find(const struct calls *calls, uint64_t number);
void calls_remove(struct calls *calls, struct call *call);
/* From now on it is in @state, because of @why, of which a part is kept. */
void call_turn(struct calls *calls, struct call *call, enum call_state state, struct bytes why);
/* Its provider has it. */
void call_given(struct call *call);
/* When its time is over; 0: never. @hold: how long it may ask or be held, 0: any time. */
uint64_t call_due(const struct call *call, uint64_t hold);
/* Whether one asks or is held. */
bool calls_wait(const struct calls *calls);

/* The numbers of all, as an array. Returns 0 or -ENOMEM. */
int calls_numbers(const struct calls *calls, struct wire_list *list);

/* Whether @functions is an array of `function`, as a cell may have it. */
bool functions_valid(struct bytes functions);
/* The one of @functions, those of the cell of @calls, that is called @name. It points into @functions. NULL: there
 * is none, or no memory. */
const struct function *calls_function(struct calls *calls, struct bytes functions, struct bytes name);
