/* What a process and its descendants occupy. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

/* Resident bytes that are not shared with a file, as far as the host tells; 0 when it does not. Looks at a bounded
 * number of processes, so it takes a bounded time. */
uint64_t memory_of_tree(pid_t pid);
