/* Saved states: variables of ended sessions on disk, kept until somebody opens their id again or they expire.
 * One file for each user and id, readable to laird's user alone, in a directory that is made when it is first
 * needed. The content comes from a session and is hostile: only its own cage ever looks inside. What was written is
 * on the disk before anybody is told, and what has changed there is not taken for it. */
#pragma once

#include "copier.h"
#include "generations.h"

#include "proto/message.h"

#define SAVED_DAMAGE_SIZE 160

struct saved {
	const struct saved_store *store; /* borrowed */
	int fd;				 /* open for reading */
	uint64_t offset;		 /* where in it the state begins */
	struct saved_state state;	 /* points into text; of a damaged file only owner and session */
	char *text;
	bool checked; /* it has digests; one of an older laird has not */
	uint8_t digest[SHA256_SIZE];
	int fetched;			/* the result of saved_fetch */
	char damage[SAVED_DAMAGE_SIZE]; /* if that is SAVED_E_DAMAGED: what became of the file */
	bool before;			/* and whether the one before it takes its place */
	int copy;
	struct copier copier;
	void (*on_fetched)(void *userdata);
	void *userdata;
};

enum {
	_SAVED_E_SUCCESS,
	SAVED_E_UNDER_WAY,
	SAVED_E_NOT_BEGUN,
	SAVED_E_DAMAGED, /* its content is not what was written */
};

/* The directory of the store, made if it is missing. Returns 0 or -errno. */
int saved_directory(int *fdp, const struct saved_store *store);
/* Remove states that have expired; with @first also files that an earlier laird left half written. */
void saved_sweep(const struct saved_store *store, bool first);

struct saved_writing;

/* Begin to write @state, whose bytes are the first @state->size of @file, to be kept for @ttl microseconds (0:
 * for ever). The state saved before stays until all of the new one is on the disk. @on_written is called in a later
 * round. Returns 0 or -errno. */
int saved_write(struct saved_writing **writingp, const struct saved_store *store, struct event_loop *loop,
		const struct saved_state *state, int file, uint64_t ttl, void (*on_written)(void *userdata),
		void *userdata);
/* 0, -errno or SAVED_E_UNDER_WAY. */
int saved_written(const struct saved_writing *writing);
/* A state that is not written by then is not saved. Returns NULL. */
struct saved_writing *saved_writing_free(struct saved_writing *writing);

/* The saved state of that user and id; the caller frees it. One whose beginning is damaged is found, too:
 * saved_fetch says so. Returns 0, -ENOENT or -errno. */
int saved_find(struct saved **savedp, const struct saved_store *store, uid_t owner, struct bytes session);
/* The same from a descriptor of it, which it owns then. */
int saved_take(struct saved **savedp, int fd, uid_t owner, struct bytes session);
struct saved *saved_free(struct saved *saved);
/* Check its content. A damaged file is kept aside. A session is given the descriptor of the file. If the session's
 * user owns the file, it could change its mode, and when it expires; so it gets a copy in memory instead. Returns
 * what saved->fetched is from now on: 0, -errno, SAVED_E_DAMAGED or SAVED_E_UNDER_WAY; then @on_fetched is called
 * in a later round. */
int saved_fetch(struct saved *saved, struct event_loop *loop, void (*on_fetched)(void *userdata), void *userdata);
double saved_age(const struct saved *saved);

struct saved_listed {
	uid_t owner;
	const struct saved_state *state; /* absent: its beginning is damaged, so its id is not known */
	double expires;			 /* seconds since the epoch; 0: never */
	double before;			 /* when the one before it was saved; 0: there is none */
	uint64_t damaged;		 /* how many of its id are, and are kept aside; or this one */
};

/* Call @fn for each that is saved, of @owner or of everybody if that is -1, until it returns false. */
void saved_each(const struct saved_store *store, uid_t owner,
		bool (*fn)(void *userdata, const struct saved_listed *listed), void *userdata);

/* Also the one before it, and with @damaged those that are kept aside. Returns whether there was one. */
bool saved_remove(const struct saved_store *store, uid_t owner, struct bytes session, bool damaged);
