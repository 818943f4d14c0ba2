/* Names of sessions, with users by their names. */
#pragma once

#include "cli.h"
#include "text.h"

/* Names of sessions as root reads them: another user's with the name of the user. Tamed. Returns @out. */
const char *name_shown(char out[static CLI_NAME_SIZE], struct lair_text name);

/* The name of a user, or the number. Returns @out. */
const char *name_of_user(char out[static CLI_NAME_SIZE], uint64_t uid);
