/* Memory and CPU time of a process and its descendants. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

/* memory: resident bytes not shared with a file, less @baseline for each process, which is the image that all of
 * them were forked from. cpu: seconds that the living processes have used, and those that they waited for. tasks:
 * processes and threads, less the first. Looks at a bounded number of processes. 0 if the host does not tell. */
struct usage {
	uint64_t memory;
	double cpu;
	uint64_t tasks;
};
struct usage usage_of_tree(pid_t pid, uint64_t baseline);

/* Of one process alone. */
uint64_t memory_of_process(pid_t pid);
