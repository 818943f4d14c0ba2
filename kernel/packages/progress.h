/* What uv does, for those who wait, read from what it says. */
#pragma once

#include "proto/base.h"

#define PROGRESS_SIZE 200

/* While it installs: @log is all that it has said so far. Returns @out. */
const char *progress_of(char out[static PROGRESS_SIZE], const char *log);
