/* Trees to delete, each in a process of its own since a large one takes long, and only a few at a time. A tree that
 * is not gone after its turn waits for another one behind all others: somebody may fill it as fast as it is
 * emptied, and must not keep others waiting. */
#pragma once

#include "base/list.h"

#include "proto/paths.h"

#include <sys/types.h>

struct removals {
	struct list trees;
	unsigned n_running, n_running_again; /* the latter are of the former */
	unsigned turn_ms;
	char root[PATH_SIZE]; /* the directory the last one lay in */
};

void removals_init(struct removals *removals);

/* Log what is not done, and the directory the trees lay in goes if it is empty. Nothing may be running. */
void removals_deinit(struct removals *removals);

/* @directory: -1, or what the last component of @path is looked for in, taken: somebody may write to that, and
 * nothing beneath is reached by its path. */
void removals_add(struct removals *removals, int directory, const char *path);

/* The child @pid has ended, with @status. False if it was none of these. */
bool removals_reap(struct removals *removals, pid_t pid, int status);

/* Whether the child @pid is one of these. */
bool removals_has(struct removals *removals, pid_t pid);
