/* The control group of one warden: all processes of its cage and no others, whoever forked them. */
#pragma once

#include "cgroup.h"

/* By controller: bytes; processes and threads; thousandths of a processor. 0 = no limit. */
struct group_limits {
	uint64_t of[_CONTROLLER_N];
};

#define GROUP_NAME_SIZE 160

struct group {
	const struct cgroups *cgroups; /* NULL: there is none */
	char name[GROUP_NAME_SIZE];
	unsigned held; /* bits of the controllers that limit it */
	struct group_limits limits;
	int events;	    /* the file that counts processes killed for memory; -1: none */
	uint64_t oom_kills; /* the count when it was last read */
};

#define GROUP_NONE ((struct group){.events = -1})

/* Which of the limits can be made to hold. */
unsigned group_would_hold(const struct cgroups *cgroups, const struct group_limits *limits);

/* Make a group with those limits that can hold, in the share of that name or, if it is "", in none. If nothing is
 * to hold, there is no group. Returns 0 or -errno. */
int group_make(struct group *group, const struct cgroups *cgroups, const char *share, const char *name,
	       const struct group_limits *limits);
/* The group that a former router has made, with the same members. */
void group_revive(struct group *group, const struct cgroups *cgroups, const char *name, unsigned held,
		  const struct group_limits *limits, uint64_t oom_kills);
/* Close its descriptors; cgroups_drop removes it. */
void group_deinit(struct group *group);

/* What a process enters by, at most one a hierarchy, opened for the caller to close: of version 1 a file to which
 * it writes a 0 itself, which takes microseconds, where moving another process takes milliseconds; of version 2 the
 * directory, into which it can be cloned. Returns how many, or -errno. */
int group_doors(const struct group *group, int fds[static _CONTROLLER_N]);

/* Set another limit. Does nothing if that controller holds nothing. Returns 0 or -errno. */
int group_limit(struct group *group, enum controller controller, uint64_t limit);

/* Whether the kernel has killed one of them for memory since the last call. */
bool group_oom_killed(struct group *group);

/* Kill all at once, if the kernel can (version 2). Returns whether it could. */
bool group_kill(const struct group *group);
