/* What a process and its descendants occupy. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

/* Resident bytes not shared with a file, less @baseline for each process: what each has beyond the image that all
 * of them grew from; and the seconds of CPU time that the processes that are left have used. Looks at a bounded
 * number of processes. 0 where the host does not tell. */
struct usage {
	uint64_t memory;
	double cpu;
};
struct usage usage_of_tree(pid_t pid, uint64_t baseline);

/* Of one process alone. */
uint64_t memory_of_process(pid_t pid);
