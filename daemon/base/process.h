/* A session's processes as the host sees them. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

/* The host's pid of the child of @warden that has the number @pid in the cage. 0 if there is none, or the host
 * does not tell. */
pid_t process_find(pid_t warden, uint64_t pid);

/* Make the process more (up to 1000) or less likely to be killed when memory runs out. Only root may do the
 * latter. */
void process_expose(pid_t pid, int score);
