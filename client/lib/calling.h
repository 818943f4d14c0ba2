/* Inside liblair: the calls that cells make of functions, and the queue where their answers wait. Marked members
 * are shared with other threads, under the queue's lock; the rest belongs to the thread of the handle. */
#pragma once

#include "handle.h"

#include <pthread.h>

struct lair_calling {
	struct answer_queue *queue; /* one of its users */
	unsigned users;		    /* shared: the list of the exec, the program, and answers on their way */
	bool cancelled;		    /* shared: the cell waits for it no longer */
	bool left;		    /* shared: the program has answered or freed it */

	/* these never change */
	uint64_t number;
	char *function, *key;
	struct bytes arguments; /* msgpack, after the struct */

	char *json; /* the arguments for the program, made when it asks for them */

	struct lair_call *call; /* the exec or attach; NULL: it is not in its list */
	struct lair_calling *next;
};

/* An answer on its way. */
struct giving {
	struct giving *next;
	struct lair_calling *calling; /* one of its users */
	msgpack_sbuffer value;
	char *error, *text;
	bool hold;
	bool instead; /* it tells that another answer was not taken */
};

struct answer_queue {
	pthread_mutex_t lock;
	unsigned users; /* shared, as the rest: the handle and the calls */
	int wake;
	struct giving *first, *last;
};

/* For its first user. NULL without memory. */
struct lair_calling *calling_new(struct answer_queue *queue, const struct call_event *event);
void calling_use(struct lair_calling *calling);
void calling_leave(struct lair_calling *calling);

/* An answer for @calling, without a value or an error yet. NULL without memory. */
struct giving *giving_new(struct lair_calling *calling);
struct giving *giving_free(struct giving *giving);

/* The next answer to send; NULL: there is none. */
struct giving *answer_queue_take(struct answer_queue *queue);
/* It could not be sent now. It is the next again. */
void answer_queue_put_back(struct answer_queue *queue, struct giving *giving);
