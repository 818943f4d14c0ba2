/* lair-kernel, started by the keeper. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

/* Start lair-kernel, which lies beside us, as the template of @profile; see spawn_program for what it gets, and
 * @socket is where laird answers. Returns 0 or -errno, having said why. */
int program_start(pid_t *pidp, const char *profile, const char *socket, int channel);
