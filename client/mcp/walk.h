/* A walk over a tree: the paths that are still to be looked at. The last one is taken first, so only one way
 * down waits. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <limits.h>

struct walk_entry {
	char *session; /* owned; NULL if there is only one session */
	char *path;    /* owned */
	bool directory;
};

struct walk {
	struct walk_entry *entries;
	size_t n, allocated;
};

void walk_deinit(struct walk *walk);
static inline void walk_entry_deinit(struct walk_entry *entry)
{
	free(entry->session);
	free(entry->path);
	*entry = (struct walk_entry){.path = NULL};
}

/* Strings are copied; @path may be "" for the root. Returns 0 or -ENOMEM. */
int walk_push(struct walk *walk, const char *session, const char *path, bool directory);
/* The path of @name in the directory @path. False if @name cannot be a name, or if there is no room. */
bool walk_join(char out[static PATH_MAX], const char *path, struct lair_text name);
/* Takes the next entry. False when none is left; else *entryp is the caller's. */
bool walk_pop(struct walk *walk, struct walk_entry *entryp);
