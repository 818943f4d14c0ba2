/* What is wrong with the paths of the settings taken together, though each is right by itself. */
#pragma once

#include "config.h"

#include <limits.h>

#define PATHS_REASON_SIZE 512

/* Returns the name of the setting to blame, static, with the sentence in @reason; NULL if those of @profile, which
 * is pinned, fit. */
const char *profile_paths_check(const struct profile *profile, char reason[PATHS_REASON_SIZE]);

/* What laird lives on that no setting needs to say. */
struct in_use {
	const char *socket;		       /* NULL: not known yet */
	const char *workspaces;		       /* NULL: as the settings have it */
	const struct profile *const *profiles; /* of sessions that go on with what they began with; NULL: none */
	size_t n_profiles;
};

/* That nothing which laird or a session is given by its name can be moved, or replaced by a link, by a session:
 * neither the places of any profile nor the files and programs of laird's own lie in what any session may change;
 * and that no session is shown those files by a place of its own. @name is the settings'. Returns 0, or -EINVAL
 * with @error. */
int config_check_paths(const struct config *config, const char *name, const struct in_use *in_use,
		       struct config_error *error);

/* Seek and pin the directories that hold laird's own files: the settings, the logs, all saved states and
 * workspaces. No session sees them; what cannot be found is left out. Returns 0 or -ENOMEM. */
int config_pin_own(struct config *config, const struct in_use *in_use);
