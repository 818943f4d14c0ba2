/* How the keeper makes processes: programs that inherit only what they are given, and helpers that share its
 * code. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

#define SPAWN_FDS_MAX 3

struct spawn_fds {
	int fds[SPAWN_FDS_MAX];
	size_t n;
	bool stays; /* it lives on when we die */
};

/* Start the program @path. It gets @given (which stay the caller's) as descriptors 3 and so on, /dev/null as stdin,
 * our stderr as stdout and stderr, and no other descriptor; default signals; a session of its own; death when we
 * die, unless it stays. Returns 0 once it runs, or -errno, also when the exec itself failed: then nothing is left
 * of it. */
int spawn_program(pid_t *pidp, const char *path, const char *const argv[], const char *const envp[],
		  const struct spawn_fds *given);

/* Run @fn with @argument in a child that dies when we die. The child ignores signals of a terminal. It exits
 * with status 0 if @fn returns 0, else 1. Descriptors are kept. Returns 0 or -errno. */
int spawn_helper(pid_t *pidp, int (*fn)(const char *argument), const char *argument);

/* A descriptor for our child @pid, or -1 where there are none. */
int spawn_pidfd(pid_t pid);

/* Raise our own limit of descriptors to the hard limit; programs start with the limit that we had. */
void spawn_raise_descriptors(void);
