/* A session's processes as the host sees them. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

/* The child of the warden @warden that calls itself @pid in there. 0 if there is none, or the host does not tell.
 */
pid_t process_find(pid_t warden, uint64_t pid);

/* Make it more (up to 1000) or less likely to be killed when memory runs out. Not everybody may. */
void process_expose(pid_t pid, int score);
