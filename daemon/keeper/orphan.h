/* Processes that a session left behind, once they have become children of the keeper. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

/* Whether the child @pid is one: neither a warden nor anything that laird started. False if the kernel cannot
 * tell (before Linux 5.9). */
bool orphan_is(pid_t pid);
