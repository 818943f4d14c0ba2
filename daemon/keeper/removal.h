/* Trees to delete, each in a process of its own since a large one takes long, and only a few at a time. If a
 * tree is not gone after its turn, it waits for another turn behind all others: a process may fill it as fast as
 * it is emptied, and must not delay others. */
#pragma once

#include "proto/list.h"

#include "proto/paths.h"

#include <sys/types.h>

struct removals {
	struct list trees;
	unsigned n_running, n_running_again; /* the latter are of the former */
	unsigned turn_ms;
	char root[PATH_SIZE]; /* the directory of the last tree */
};

void removals_init(struct removals *removals);

/* Log trees that are not removed, and remove their directory if it is empty. Nothing may be running. */
void removals_deinit(struct removals *removals);

/* @directory: -1, or the directory in which the last component of @path is removed; it is taken. Somebody may
 * write to it, so nothing in it is reached by a path. */
void removals_add(struct removals *removals, int directory, const char *path);

/* The child @pid has ended, with @status. False if it was none of these. */
bool removals_reap(struct removals *removals, pid_t pid, int status);

/* Whether the child @pid is one of these. */
bool removals_has(struct removals *removals, pid_t pid);
