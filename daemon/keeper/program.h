/* lair-kernel, started by the keeper. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

/* Start lair-kernel, which lies beside our own executable, as the template of @profile. See spawn_program for
 * what it gets; @socket is where laird answers. Returns 0, or -errno after a line in the log. */
int program_start(pid_t *pidp, const char *profile, const char *socket, int channel);
