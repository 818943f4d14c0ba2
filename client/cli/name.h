/* Names of sessions, with users by their names. */
#pragma once

#include "base/text.h"
#include "cli.h"

/* The name of a session as root reads it: if the session is another user's, with the name of that user. Tamed.
 * Returns @out. */
const char *name_shown(char out[static CLI_NAME_SIZE], struct lair_text name);

/* The name of a user; the number if there is no name. Returns @out. */
const char *name_of_user(char out[static CLI_NAME_SIZE], uint64_t uid);
