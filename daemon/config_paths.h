/* What is wrong with the paths of a profile taken together, though each is right by itself. */
#pragma once

#include "config.h"

#define PATHS_REASON_SIZE 512

/* Returns the name of the setting to blame, static, with the sentence in @reason; NULL if they fit. */
const char *profile_paths_check(const struct profile *profile, char reason[PATHS_REASON_SIZE]);

/* The same for what sessions must not be able to change: @path, which may be NULL or not exist. Whether it lies in
 * what @profile lets them. */
bool profile_may_change(const struct profile *profile, const char *path, const char **writep);
