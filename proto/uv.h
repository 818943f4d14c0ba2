/* Where uv is, the program that installs packages: for whoever runs it, and whoever says that it is missing. */
#pragma once

#include "proto/paths.h"

/* Writes where it is: @wanted, or, if that is empty, the first one in PATH and in the usual places. Returns 0 or
 * -ENOENT. */
int uv_find(char path[static PATH_SIZE], struct bytes wanted);
