/* What one user costs the router: connections, bytes on their way in, what is held for the user, and time. Bytes
 * are charged before there is memory for them. Turns go to the user who has taken the least time. So no user can
 * take what the others need.
 *
 * One share of memory is for all that is held for a user: what cells hold until they are answered, answers on their
 * way out, and kept answers. What ledgers or transcripts have, too, counts twice. When the share is full, kept
 * answers make room, the oldest first. If that is not enough, what needs room is refused. Answers on their way are
 * not refused, but connection.c bounds them. */
#pragma once

#include "base/table.h"
#include "proto/event.h"

#include <sys/types.h>

struct user;

struct users {
	struct list all;
	struct table by_uid;
	struct list asking; /* those with a request to be handled */
	uint64_t share;	    /* how much may be held for one user; 0: any */
	/* Forget the oldest kept answer of @user. Returns whether there was one. NULL: none is ever kept. */
	bool (*make_room)(struct user *user);
	/* Bytes on their way in. A large message first reserves room for the whole of it, so once it has begun
	 * it can end. */
	uint64_t incoming, incoming_max; /* of all users, and how much that may be */
	uint64_t
		incoming_each; /* how much it may be of one user: at least one message, and less than that of all */
};

struct user {
	struct list node; /* among all that there are */
	struct table_node by_uid;
	struct users *users;
	uid_t uid;
	struct party party; /* the time that its requests and its sessions have taken */

	size_t n_connections;
	uint64_t incoming, outgoing; /* bytes */
	struct list asking;	     /* in users, while there is somebody ready */
	struct list ready;	     /* connections with a request to be handled, in turn */
	struct list starved;	     /* connections that wait for room for a message, first come first served */
	struct list resting;	     /* connections with a long request, which has to wait: see party_waits */
	struct timer rest;	     /* until then */

	struct list sessions; /* oldest first */
	size_t n_sessions;

	struct list answered;	/* promises, oldest first */
	uint64_t kept;		/* bytes of these */
	uint64_t made_room;	/* how many of them were forgotten before their time */
	uint64_t calls_changed; /* how often calls of its cells have */
	uint64_t at_work;	/* bytes of cells that wait or run: code, output, what they show */
};

void users_init(struct users *users);
void users_deinit(struct users *users);
/* The one of @uid; NULL if there is none. */
struct user *user_find(const struct users *users, uid_t uid);
/* The same; make the user if it does not exist. It lasts as long as @users. NULL when out of memory. */
struct user *user_get(struct users *users, uid_t uid);

/* ---- what is held ---- */

uint64_t user_holds(const struct user *user);
/* Whether @size bytes have room, after kept answers have made some if necessary. */
bool user_has_room(struct user *user, uint64_t size);
/* Charge @size bytes. Returns false if the user has no room for them. A @user of NULL pays for nothing. */
bool user_take(struct user *user, uint64_t size);
/* Charge them in any case: a former router had taken them. */
void user_charge(struct user *user, uint64_t size);
void user_give_back(struct user *user, uint64_t size);

/* ---- what is on its way in ---- */

/* Returns false if there is no room for so many bytes now. */
bool user_reserve(struct user *user, uint64_t size);
/* The same, whatever there is: for what is small. */
void user_hold(struct user *user, uint64_t size);
void user_release(struct user *user, uint64_t size);

/* ---- whose request is next ---- */

/* @turn is of a connection that has a request. */
void user_asks(struct user *user, struct event_loop *loop, struct list *turn);
/* Of the users with a request, the one who has taken the least time so far. NULL: nobody has one. */
struct user *users_turn(struct users *users);
/* The first connection of the user that has a request; it leaves the queue. */
struct list *user_next(struct user *user);
/* So is one that ends. */
void user_leave(struct user *user, struct list *turn);
