/* The files of the workspace that a cell has created or changed. */
#pragma once

#include "proto/wire.h"

#include <time.h>

/* In the warden, and in a branch with files of its own: the directory that paths are relative to. */
void artifacts_home(const char *workspace);
/* The directory that artifacts_home has set. */
const char *artifacts_root(void);

/* Whether a cell that begins @now would seem to have changed a file that was changed at @newest; zeroes: there is
 * no such file. This is so for a tick of the clock, or for as long as the clock was set back, but not for a second
 * or more. */
bool artifacts_too_soon(struct timespec newest, struct timespec now);

/* Around a cell. @changing: Python has seen the cell open a file for writing, or do something that may write. The
 * array of `artifact` maps is borrowed until the next begin, absent if there are none. @more: there are more
 * files. */
void artifacts_begin(void);
struct bytes artifacts_end(bool changing, bool *more);
