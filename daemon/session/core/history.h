/* The checkpoints of one session: a tree in which each knows the state it grew from, so `undo` walks back along
 * what really happened, also after a restore. This file decides which to forget when there are too many; the
 * session kills the frozen interpreters. */
#pragma once

#include "proto/list.h"
#include "warden/done_calls.h"

#define CHECKPOINT_NAME_MAX 64

struct interpreter;

struct checkpoint {
	struct list node;		    /* in its history, oldest first */
	char name[CHECKPOINT_NAME_MAX + 1]; /* "" = taken after a cell, by itself */
	uint64_t cell;			    /* the state is the one after this cell */
	uint64_t born;			    /* event_now() */
	uint64_t memory;		    /* bytes it holds alone, as it last said */
	uint64_t measured;		    /* event_now() when it was last asked */
	uint64_t files;			    /* of the state, as its warden knows them; 0: they are not kept */
	uint64_t n_files;		    /* how many, when that is known */
	uint64_t files_size;		    /* bytes that are kept of them, and not for the state before */
	bool files_lack;		    /* some of them are not kept */
	struct checkpoint *parent;	    /* older, so before it in the list; NULL: the pristine image */
	uint64_t position;		    /* in the list that a client got last, from 1 on */
	bool severed;			    /* the state before it has been forgotten */
	struct past_calls done_calls;	    /* in its past */
	struct interpreter *interpreter;    /* frozen */
};

struct history {
	struct list checkpoints;
	size_t n_automatic, n_named;
	struct checkpoint *base; /* what the live interpreter grew from; NULL: the pristine image */
	bool saved;		 /* no cell has run since: the live state is that of base */
	bool severed;		 /* a state between base and the live one has been forgotten */
	char unkept[160]; /* why the last copy after a cell could not be made; "": it could, or the live state
			   * has been one that is kept since */
};

void history_init(struct history *history);
void history_deinit(struct history *history);

/* The live state is that of @base, or of the pristine image if NULL. */
void history_rebase(struct history *history, struct checkpoint *base);

/* Add the present state, after @cell, as a child of base; without a name. It becomes the base, saved. Returns
 * NULL when out of memory. */
struct checkpoint *history_add(struct history *history, struct interpreter *interpreter, uint64_t cell);
/* It was killed, dropped or forgotten. Its children become children of its parent. Frees it. */
void history_remove(struct history *history, struct checkpoint *checkpoint);

/* Give it a name, or another one. */
void history_name(struct history *history, struct checkpoint *checkpoint, struct bytes name);

/* By name; else, where it is a number, the newest one of that cell. NULL if there is none. */
struct checkpoint *history_find(struct history *history, struct bytes name);
struct checkpoint *history_of(struct history *history, const struct interpreter *interpreter);

/* @n states back from the live one; *@target NULL = the pristine image. False if that state is forgotten or
 * never was. */
bool history_back(const struct history *history, uint64_t n, struct checkpoint **target);

/* The next one to forget if at most @automatic unnamed ones and @memory bytes in all may be kept (0 = no limit):
 * one off the path to the live state if there is any, else the oldest. Never a named one because of the number,
 * and never the base. NULL if there is nothing to forget. */
struct checkpoint *history_excess(struct history *history, uint64_t automatic, uint64_t memory);

uint64_t history_memory(const struct history *history);
/* Seconds since the oldest was made; 0 if there is none. */
double history_age(const struct history *history);
bool checkpoint_name_valid(struct bytes name);
