/* What one user costs the router at its socket: connections, bytes on their way in and out, and the time that its
 * requests take. Each is charged before it is spent, so that no user can take what the others need. */
#pragma once

#include "list.h"

#include <sys/types.h>

struct account {
	struct list node; /* among all that there are */
	uid_t uid;
	size_t n_connections;
	uint64_t incoming, outgoing; /* bytes */
	uint64_t spent;		     /* microseconds, see accounts_turn */
	struct list ready;	     /* connections with a request to be handled, in turn */
	struct list starved;	     /* connections that wait for room for a message, first come first served */
};

/* Bytes on their way in. A large message has room reserved for the whole of it before any of it is kept, so one
 * that has begun can end.
 */
struct accounts {
	struct list all;
	uint64_t incoming, incoming_max; /* of all users, and how much that may be */
	uint64_t
		incoming_each; /* how much it may be of one user: at least one message, and less than that of all */
	uint64_t clock;	       /* the time spent by the user whose turn was last */
};

void accounts_init(struct accounts *accounts);
/* The one of @uid, made if need be. Returns NULL when out of memory. */
struct account *account_get(struct accounts *accounts, uid_t uid);
/* Nothing of it is left. */
struct account *account_free(struct account *account);

/* Returns false if there is no room for so much more now. */
bool account_reserve(struct accounts *accounts, struct account *account, uint64_t size);
/* The same, whatever there is: for what is small. */
void account_charge(struct accounts *accounts, struct account *account, uint64_t size);
void account_release(struct accounts *accounts, struct account *account, uint64_t size);

/* Whose request is next: of those with some, the user whose requests have taken the least time so far. NULL: nobody
 * has one. */
struct account *accounts_turn(struct accounts *accounts);
/* A request of its took so long. */
void account_spend(struct account *account, uint64_t us);
/* It has had no request waiting until now: time in which it asked for nothing is not saved up. */
void account_wake(const struct accounts *accounts, struct account *account);
