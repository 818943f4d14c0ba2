/* Where in the control group file systems this process is: for each controller, the directory of its own group. */
#pragma once

#include "proto/base.h"

#include <stdio.h>

enum controller {
	CONTROLLER_MEMORY,
	CONTROLLER_PIDS,
	CONTROLLER_CPU,
	_CONTROLLER_N,
};

#define CONTROLLER_BIT(controller) (1U << (controller))

extern const char *const controller_names[_CONTROLLER_N];

struct cgroup_place {
	unsigned version; /* 0: no hierarchy that is mounted may have it */
	char *path;	  /* owned; two controllers may have the same */
};

/* From /proc/self/cgroup and /proc/self/mountinfo, or what stands for them. A controller that no hierarchy of
 * version 1 has is looked for in that of version 2, where only trying can tell whether it is there. Returns 0 or
 * -errno. */
int cgroup_places_read(struct cgroup_place places[static _CONTROLLER_N], FILE *cgroup, FILE *mountinfo);
void cgroup_places_deinit(struct cgroup_place places[static _CONTROLLER_N]);
