/* What one user costs the router: connections, bytes on their way in and out, what cells hold until they are
 * answered, kept answers, and the time that all of it takes. Bytes are charged before there is memory for them, and
 * turns go to who has taken the least time, so that no user can take what the others need. */
#pragma once

#include "base/event.h"
#include "base/table.h"

#include <sys/types.h>

struct users {
	struct list all;
	struct table by_uid;
	struct list asking; /* those with a request to be handled */
	uint64_t work_each; /* how much may be at work for one user; 0: any */
	/* Bytes on their way in. A large message has room reserved for the whole of it before any of it is kept, so
	 * one that has begun can end. */
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

	struct list answered; /* promises, oldest first */
	uint64_t size;	      /* of these */
	uint64_t at_work;     /* bytes of cells that wait or run: code, output, what they show */
};

void users_init(struct users *users);
void users_deinit(struct users *users);
/* The one of @uid; NULL if there is none. */
struct user *user_find(const struct users *users, uid_t uid);
/* The same, made if need be; it lasts as long as @users. NULL when out of memory. */
struct user *user_get(struct users *users, uid_t uid);

/* ---- what is at work ---- */

/* Returns false if the user has no room for so much more. A @user of NULL pays for nothing. */
bool user_take(struct user *user, uint64_t size);
/* The same, whatever there is: what a former router had taken. */
void user_charge(struct user *user, uint64_t size);
void user_give_back(struct user *user, uint64_t size);

/* ---- what is on its way in ---- */

/* Returns false if there is no room for so much more now. */
bool user_reserve(struct user *user, uint64_t size);
/* The same, whatever there is: for what is small. */
void user_hold(struct user *user, uint64_t size);
void user_release(struct user *user, uint64_t size);

/* ---- whose request is next ---- */

/* @turn, of a connection, has one. */
void user_asks(struct user *user, struct event_loop *loop, struct list *turn);
/* Of those with a request, who has taken the least time so far. NULL: nobody has one. */
struct user *users_turn(struct users *users);
/* The first of its connections that has one, whose turn it is: it is out of the line. */
struct list *user_next(struct user *user);
/* So is one that ends. */
void user_leave(struct user *user, struct list *turn);
