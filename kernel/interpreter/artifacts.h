/* Which files of the workspace a cell has created or changed. */
#pragma once

#include "proto/wire.h"

#include <time.h>

/* In the warden, and in a branch that has files of its own: what the paths are relative to. */
void artifacts_home(const char *workspace);
/* The same again. */
const char *artifacts_root(void);

/* Whether a cell that began @now would be taken for one that changed something at @newest, zeroes if nothing was:
 * for a tick of the clock, or as long as it was set back, but not for a second or more. */
bool artifacts_too_soon(struct timespec newest, struct timespec now);

/* Around a cell. @changing: whether Python has been seen to open something for writing, or to do what may. The
 * array of `artifact` maps is borrowed until the next begin, absent if there are none. @more: there are more than
 * it tells. */
void artifacts_begin(void);
struct bytes artifacts_end(bool changing, bool *more);
