/* A look at every file of a tree, piece by piece. The tree may be changed meanwhile by somebody hostile, who has
 * the same rights; no link is followed. */
#pragma once

#include "manifest.h"
#include "walk.h"

struct scan {
	struct store *store;
	struct walk walk;
	struct manifest *found;
	bool timeless; /* so each file is asked for who may write to it */
};

/* More than that are not looked at. */
#define SCAN_FILES_MAX 200000

/* @root: the caller's, not O_PATH. Returns 0 or -errno. */
int scan_begin(struct scan *scan, struct store *store, int root);
/* Look at @entries more, or somewhat more than that. Returns 0 when all have been seen, then `found` is sorted and
 * the caller's; 1 if there are more; or -errno. */
int scan_step(struct scan *scan, unsigned entries);
/* Such directories get their modes back: no sooner, because what is in them can be reached until then. */
void scan_shut(struct scan *scan);
void scan_deinit(struct scan *scan);

/* Where @found has what @before has, untouched, they share it. */
void scan_share(struct store *store, struct manifest *found, const struct manifest *before);
