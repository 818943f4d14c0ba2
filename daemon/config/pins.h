/* The directories that a profile names, as they were when the settings were read. */
#pragma once

#include "config.h"

/* The name of the setting. Static. */
const char *pinned_name(enum pinned_kind kind);

/* Find all directories that @profile names. Returns 0; -ENOMEM; or -EINVAL with the one that cannot be found in
 * *@culpritp, borrowed from the profile, and the reason in *@errorp, which is PIN_E_CHANGED or -errno. */
int profile_pin(struct profile *profile, const struct pinned **culpritp, int *errorp);
/* The same for settings that were in force before: a directory that cannot be found is pinned to nothing.
 * Returns 0 or -ENOMEM. */
int profile_pin_found(struct profile *profile);
void profile_unpin(struct profile *profile);
