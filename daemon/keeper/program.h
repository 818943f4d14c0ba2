/* lair-kernel, started by the keeper. There is one for each language, and for each Python that Lair was built with.
 */
#pragma once

#include "proto/base.h"
#include "proto/paths.h"

#include <sys/types.h>

/* A version of Python as a number. */
#define PYTHON_NUMBER(major, minor) ((unsigned)(major) << 8 | (unsigned)(minor))

/* The lair-kernel for @language; of Python that for this version of @python, 0: the one that Lair was built for. It
 * lies beside our own executable, if it is there. Returns 0 or -errno. */
int program_path(char path[static PATH_SIZE], const char *language, unsigned python);

/* Start it as the template of @profile. See spawn_program for what it gets; @socket is where laird answers.
 * Returns 0, or -errno after a line in the log. */
int program_start(pid_t *pidp, const char *profile, const char *language, unsigned python, const char *socket,
		  int channel);

/* The same as a builder of packages, which has our environment: what the operator tells uv is there. */
int program_start_builder(int channel);
/* laird again, as a copier. */
int program_start_copier(int channel);
