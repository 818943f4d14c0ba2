/* The control group of one warden: everybody in its cage and nobody else, whoever forked whom. */
#pragma once

#include "cgroup.h"

/* By controller: bytes; processes and threads; thousandths of a processor. 0 = no limit. */
struct group_limits {
	uint64_t of[_CONTROLLER_N];
};

struct group {
	const struct cgroups *cgroups; /* NULL: there is none */
	const char *name;	       /* whoever made it keeps this */
	unsigned held;		       /* bits of the controllers that limit it */
	struct group_limits limits;
	int events;	    /* the file that counts who was killed for memory; -1: none */
	uint64_t oom_kills; /* as it last said */
};

#define GROUP_NONE ((struct group){.events = -1})

/* Which of the limits can be made to hold. */
unsigned group_would_hold(const struct cgroups *cgroups, const struct group_limits *limits);

/* Make one with those limits that can be made to hold; if that is none, there is no group. Returns 0 or -errno. */
int group_make(struct group *group, const struct cgroups *cgroups, const char *name,
	       const struct group_limits *limits);
/* One that a former router has made, with the same members. */
void group_revive(struct group *group, const struct cgroups *cgroups, const char *name, unsigned held,
		  const struct group_limits *limits, uint64_t oom_kills);
/* Close it; it is for cgroups_drop to remove. */
void group_deinit(struct group *group);

/* What a process enters by, at most one a hierarchy, opened for the caller to close: of version 1 a file to which
 * it writes a 0 itself, which takes microseconds, where moving another process takes milliseconds; of version 2 the
 * directory, into which it can be cloned. Returns how many, or -errno. */
int group_doors(const struct group *group, int fds[static _CONTROLLER_N]);

/* Another limit. None where that controller holds nothing. Returns 0 or -errno. */
int group_limit(struct group *group, enum controller controller, uint64_t limit);

/* Whether the kernel has killed one of them for memory since this was last asked. */
bool group_oom_killed(struct group *group);

/* Kill all at once, where the kernel can (version 2). Whether it could. */
bool group_kill(const struct group *group);
