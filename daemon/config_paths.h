/* What is wrong with the paths of a profile taken together, though each is right by itself. */
#pragma once

#include "config.h"

#define PATHS_REASON_SIZE 512

/* Returns the name of the setting to blame, static, with the sentence in @reason; NULL if they fit. */
const char *profile_paths_check(const struct profile *profile, char reason[PATHS_REASON_SIZE]);

/* Whoever could change these could let himself do anything, or hide that he did. Return 0, or -EINVAL with @error.
 */

/* That no profile lets its sessions change @path, which may be NULL or not exist; @name is the file's. */
int config_keep_out(const struct config *config, const char *name, const char *path, struct config_error *error);
/* Nor what is known only when laird begins: the socket in use, and where saved states are. */
int config_check_places(const struct config *config, const char *socket, struct config_error *error);
