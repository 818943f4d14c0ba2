/* The control group of this process: for each controller, the directory of its own group. */
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

struct cgroup_home {
	unsigned version; /* 0: no mounted hierarchy can have it */
	char *path;	  /* owned; two controllers may have the same */
};

/* From /proc/self/cgroup and /proc/self/mountinfo, or files like these. If no hierarchy of version 1 has a
 * controller, that of version 2 may have it; only trying can tell. Returns 0 or -errno. */
int cgroup_homes_read(struct cgroup_home places[static _CONTROLLER_N], FILE *cgroup, FILE *mountinfo);
void cgroup_homes_deinit(struct cgroup_home places[static _CONTROLLER_N]);
