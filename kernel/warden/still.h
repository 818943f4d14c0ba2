/* Processes that must not run for a while, whatever runs in them: a copy of an interpreter is what a session has
 * made of it. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

/* Stops the child @pid and kills all that descends from it: a copy has no children. Whether it stands still; if
 * not, or if there was a descendant, call it again. */
bool still_stop(pid_t pid);
void still_end(pid_t pid);
