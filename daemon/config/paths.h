/* Errors of the settings' paths taken together, though each is right by itself. */
#pragma once

#include "config.h"

#include <limits.h>

#define PATHS_REASON_SIZE 512

/* Returns the name of the wrong setting, static, with the sentence in @reason; NULL if the paths of @profile,
 * which is pinned, fit together. */
const char *profile_paths_check(const struct profile *profile, char reason[PATHS_REASON_SIZE]);

/* What laird lives on that no setting needs to say. */
struct in_use {
	const char *socket;		       /* NULL: not known yet */
	const char *workspaces;		       /* NULL: as the settings have it */
	const struct profile *const *profiles; /* of sessions that go on with earlier settings; NULL: none */
	size_t n_profiles;
};

/* Check that no session can move or replace anything that laird or another session is given by name: neither the
 * directories of any profile nor laird's own files and programs may lie in a directory that some session may
 * change. And check that no directory of a profile shows laird's own files. @name is the settings'. Returns 0,
 * or -EINVAL with @error. */
int config_check_paths(const struct config *config, const char *name, const struct in_use *in_use,
		       struct config_error *error);

/* The same of one profile more, from whose sessions all others are kept. Returns as config_check_paths. */
int config_check_one(const struct config *config, const struct in_use *in_use, const struct profile *profile,
		     struct config_error *error);

/* Find and pin the directories that hold laird's own files: the settings, the logs, saved states and workspaces.
 * No session sees them. One that cannot be found is left out. Returns 0 or -ENOMEM. */
int config_pin_own(struct config *config, const struct in_use *in_use);
