/* Who may open sessions with a profile. */
#pragma once

#include "config.h"

#include <sys/types.h>

/* The groups that a user is in, as the kernel tells them. */
struct membership {
	uid_t uid;
	gid_t *groups;
	size_t n;
};

/* Root, laird's own user, those it names, those in a group it names; everybody if it names nobody. */
bool profile_is_for(const struct profile *profile, const struct membership *membership);
/* The names of the profiles that are, as a list to print; the caller's to free, NULL without memory. */
char *config_profiles_for(const struct config *config, const struct membership *membership);
