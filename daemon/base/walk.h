/* The way to a path. A user who may change a directory may replace anything in it by a link. So a name is safe
 * only if nothing on the way to it lies in such a directory. */
#pragma once

#include "proto/base.h"

#include <limits.h>

/* The real path of @path, which is absolute; a missing component is taken for a directory. Returns 0 or -errno.
 */
int walk_to(char real[PATH_MAX], const char *path);

/* Whether the way to @path leads through something in @outer, which is a real path, or (@or_same) ends at it.
 * @at is that thing, or the end of the way if it lies in there. Also true if the way cannot be walked. */
bool walk_through(char at[PATH_MAX], const char *path, const char *outer, bool or_same);

/* Whether @inner lies in @outer; both are real. */
bool walk_within(const char *inner, const char *outer, bool or_same);
