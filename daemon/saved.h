/* States of sessions on disk: what is left of one that has ended, until somebody opens its id again or their time
 * is over. One file for each user and id, readable to laird's user alone, in a directory that is made when it is
 * first needed. What a session wrote into it is hostile: only its own cage ever looks inside. */
#pragma once

#include "proto/message.h"

#include <sys/types.h>

struct saved_store {
	const char *configured, *socket; /* borrowed: where it is */
	uint64_t per_user;		 /* how many one user may have; the first to expire goes first */
};

struct saved {
	int fd;			  /* open for reading */
	uint64_t offset;	  /* where in it the state begins */
	struct saved_state state; /* points into text */
	char *text;
};

/* Remove what has expired, and what an earlier life left half written. */
void saved_sweep(const struct saved_store *store);

/* Write @state, whose bytes are the first @state->size of @file, to be kept for @ttl microseconds (0: for ever), in
 * the place of what was saved before. Returns 0 or -errno. */
int saved_write(const struct saved_store *store, const struct saved_state *state, int file, uint64_t ttl);

/* What is saved for that user and id; the caller frees it. Returns 0, -ENOENT or -errno. */
int saved_find(struct saved **savedp, const struct saved_store *store, uid_t owner, struct bytes session);
/* The same from a descriptor of it, which becomes its own. */
int saved_take(struct saved **savedp, int fd, uid_t owner, struct bytes session);
struct saved *saved_free(struct saved *saved);
/* A session is given its descriptor. One that is the owner of the file could change its mode by that, and when it
 * expires: then a copy in memory takes its place. Returns 0 or -errno. */
int saved_protect(struct saved *saved);
double saved_age(const struct saved *saved);

void saved_remove(const struct saved_store *store, uid_t owner, struct bytes session);
