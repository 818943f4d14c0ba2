/* The files of the workspace that a cell has created or changed. */
#pragma once

#include "proto/wire.h"

#include <time.h>

/* In the warden, and in a branch with files of its own: the directory that paths are relative to. */
void artifacts_home(const char *workspace);
/* The same again. */
const char *artifacts_root(void);

/* Whether a cell that began @now would seem to have changed a file that was changed at @newest; zeroes if there
 * is none. This is so for a tick of the clock, or for as long as the clock was set back, but not for a second or
 * more. */
bool artifacts_too_soon(struct timespec newest, struct timespec now);

/* Around a cell. @changing: Python has been seen to open something for writing, or to do something that may
 * write. The array of `artifact` maps is borrowed until the next begin, absent if there are none. @more: there
 * are more. */
void artifacts_begin(void);
struct bytes artifacts_end(bool changing, bool *more);
