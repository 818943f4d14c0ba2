/* One share of the processors: it has as much as any other, however many groups are in it. The groups of one
 * template are in one share, so that a user with many busy sessions takes nothing from another user. */
#pragma once

#include "cgroup.h"

#define SHARE_NAME_SIZE 32

struct cpu_share {
	char name[SHARE_NAME_SIZE]; /* "": there is none, and groups stand beside the shares */
	bool made;
};

/* Give it a name that no other has had since the machine was started, if processors can be divided. */
void share_init(struct cpu_share *share, struct cgroups *cgroups);
/* Before a group is made in it. If the host does not let us, there is none from now on. */
void share_make(struct cpu_share *share, const struct cgroups *cgroups);
/* One user has so many shares, which are to have as much as one together. */
void share_divide(const struct cpu_share *share, const struct cgroups *cgroups, size_t parts);
/* Remove it when no group is left in it. */
void share_drop(const struct cpu_share *share, struct cgroups *cgroups);
