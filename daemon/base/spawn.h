/* How the keeper makes processes: programs that inherit nothing they were not given, and helpers that share its
 * code. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

#define SPAWN_FDS_MAX 3

struct spawn_fds {
	int fds[SPAWN_FDS_MAX];
	size_t n;
	bool stays; /* when we die, it does not */
};

/* Start the program @path. It gets @given (which stay the caller's) as descriptors 3 and so on, /dev/null as stdin,
 * our stderr as stdout and stderr, and no other descriptor; default signals; a session of its own; death when we
 * die, unless it stays. Returns 0 once it runs, or -errno, also when the exec itself failed: then nothing is left
 * of it. */
int spawn_program(pid_t *pidp, const char *path, const char *const argv[], const char *const envp[],
		  const struct spawn_fds *given);

/* Run @fn with @argument in a child that dies when we die. It ignores what a terminal sends and ends with status 0
 * or 1 as @fn returns 0 or not. Descriptors are kept. Returns 0 or -errno. */
int spawn_helper(pid_t *pidp, int (*fn)(const char *argument), const char *argument);

/* A descriptor for our child @pid, or -1 where there are none. */
int spawn_pidfd(pid_t pid);

/* Allow ourselves as many descriptors as we may have; programs start with the limit that we had. */
void spawn_raise_descriptors(void);
