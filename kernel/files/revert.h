/* Bring the files of a state back. Nothing runs in the tree meanwhile but, perhaps, somebody hostile with the same
 * rights; no link is followed. First everything is made ready that may need room, beside what is there. If there is
 * none, all stays as it is. */
#pragma once

#include "scan.h"

enum revert_change {
	REVERT_CHANGED, /* it has its content, its mode or its time again */
	REVERT_MADE,	/* it had been deleted or renamed */
	REVERT_REMOVED, /* it was not there */
	REVERT_FAILED,	/* it is not what it was */
	_REVERT_CHANGE_N,
};

struct act;

struct revert {
	struct store *store;
	struct reach reach;
	int made; /* the file that is being made; -1: none */
	struct manifest *now, *target;
	struct file **inodes; /* of now, when needed */
	struct act *acts, **linked;
	size_t n, n_linked, at;
	unsigned phase;
	unsigned serial; /* of temporary names */
	bool *touched;	 /* of target: what lies in this directory was changed */
	int refused;	 /* -errno: nothing was done */
	char why[256];	 /* what could not be brought back; "": nothing */
};

/* @root: the caller's, not O_PATH. @now: what is there, @target: what should be; both are used. Returns 0 or
 * -ENOMEM. */
int revert_begin(struct revert *revert, struct store *store, int root, struct manifest *now,
		 struct manifest *target);
/* Do some more. Returns 0 when it is done, 1 if there is more to do. */
int revert_step(struct revert *revert);
/* Do no more: nothing, if everything can still be taken back, or else the rest is named as failed. */
void revert_give_up(struct revert *revert, const char *why);
/* What is there afterwards: what @target has in common with it is shared. NULL if there is no memory. */
struct manifest *revert_result(struct revert *revert);
void revert_deinit(struct revert *revert);

/* How two states differ. Calls @tell for each file, in the order of their paths; @now or @then is NULL if it is not
 * there. */
void revert_compare(const struct manifest *now, const struct manifest *then,
		    void (*tell)(void *userdata, struct file *now, struct file *then), void *userdata);
/* What was done, in the order of the paths; NULL after the last. */
/* Whether it is only a directory whose time or mode was set again. */
bool revert_is_quiet(const struct revert *revert, size_t i);
const char *revert_done(const struct revert *revert, size_t i, enum revert_change *change);
