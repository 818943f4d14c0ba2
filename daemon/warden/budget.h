/* The budget of a warden: the limits of its group, from its profile and from what is in the group. */
#pragma once

#include "cgroup/group.h"

struct interpreter;
struct profile;
struct warden;

/* Bits of the controllers that will limit the wardens of a profile. */
unsigned budget_controllers(const struct profile *profile, const struct cgroups *cgroups);

/* Before a warden is asked for: make its group, and open the descriptors by which it enters, the caller's to
 * close. Returns how many, or -errno. */
int budget_begin(struct warden *warden, int doors[static _CONTROLLER_N]);

/* There is another frozen copy, or one less. */
void budget_count(struct warden *warden);

/* A new @interpreter says that it is the child @number of the warden. This may be a lie. */
void budget_introduce(struct warden *warden, struct interpreter *interpreter, uint64_t number);
