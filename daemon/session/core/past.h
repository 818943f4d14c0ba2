/* How sessions ended, by owner and id, so that the next client of an id can be told what is gone. A file remembers
 * it: it outlives routers, and laird itself if it lies on a disk, where each record is a second later. It also says
 * which sessions live: one that lived, and is nowhere when laird starts, has ended without a word. One-shots have
 * no id and are not in it. */
#pragma once

#include "files/copier.h"
#include "files/saved.h"
#include "name.h"
#include "proto/list.h"

#include <sys/types.h>

/* How many are remembered: of sessions that a client shut down, and of all others. One user who has more than this
 * part of a kind loses the oldest of them first. */
#define PAST_MAX 2048
#define PAST_PART 8
#define PAST_TTL_S (7 * 24 * 3600)
#define PAST_WHY_SIZE 24
#define PAST_SENTENCE_SIZE 192

/* A file has these, and others would have another magic. */
struct ending {
	char why[PAST_WHY_SIZE];	    /* "": there is none */
	char not_saved[PAST_SENTENCE_SIZE]; /* why its variables were to be saved, and were not */
	double when;			    /* seconds since the epoch */
	uint64_t birth, cells;
	uint8_t by_root; /* it was another user's, and root has shut it down */
	uint8_t saved;	 /* its variables were, when it ended */
	uint8_t spare[6];
};

enum past_kind { PAST_LIVING, PAST_ENDED, PAST_SHUT, _PAST_N };

struct past {
	int directory, fd;	    /* directory: -1 if the file is in memory */
	uint64_t n_written;	    /* records in the file */
	void *table;		    /* tsearch(3), by owner and id */
	struct list lists[_PAST_N]; /* oldest first */
	size_t n[_PAST_N];
	bool failed; /* the last record could not be written, which has been said */
	struct event_loop *loop;
	struct timer later; /* until what was written is brought to the disk */
	struct copier copier;
	bool renamed; /* so the directory is to be brought there, too */
};

/* @loop: NULL: what is written comes to the disk when the kernel sees fit. */
void past_init(struct past *past, struct event_loop *loop);
void past_deinit(struct past *past);
/* Read what is remembered: from @left, which becomes its own, if a router has left it in memory; else from the
 * store, or if that cannot be, into memory, whose descriptor the caller stores. Returns whether it is to be stored.
 */
bool past_open(struct past *past, const struct saved_store *store, int left);

/* A number that no other session has. */
uint64_t past_new_birth(void);
/* @id of @owner lives, as @birth. Returns whether there was one of that id before. */
bool past_begin(struct past *past, uid_t owner, const char *id, uint64_t birth);
/* That one has ended. */
void past_end(struct past *past, uid_t owner, const char *id, const struct ending *ending);
/* How the last one of that name ended; NULL if it is not known. */
const struct ending *past_find(const struct past *past, const struct session_name *name);
/* What was saved of the last session of that name is not there any more: @why. */
void past_lose(struct past *past, const struct session_name *name, const char *why);
/* Whoever is said to live, and does not for @lives, has ended without a word. */
void past_settle(struct past *past, bool (*lives)(void *userdata, const struct session_name *name, uint64_t birth),
		 void *userdata);

/* The record of PROTOCOL.md. @ending: NULL if it is not known. Returns 0 or -ENOMEM. */
int past_put(msgpack_sbuffer *buffer, const struct ending *ending);
/* "it was idle for too long", static or in @out. */
const char *past_words(char out[static PAST_SENTENCE_SIZE], const struct ending *ending);
