/* Calls of functions, for people. */
#pragma once

#include "cli.h"

#include "base/call_text.h"

/* The arguments of `lair answer` that name the call, and no call of a later cell: "a 3/1" or "--key KEY 1".
 */
#define CALL_NAME_SIZE (CLI_NAME_SIZE + 96)
const char *call_name(char out[static CALL_NAME_SIZE], const struct lair_waiting *waiting);
