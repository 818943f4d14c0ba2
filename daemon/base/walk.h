/* The way to a path. Whoever may change a directory may put a link in the place of all that lies in it: a name is
 * safe only if nothing that is looked up on the way to it lies there. */
#pragma once

#include "proto/base.h"

#include <limits.h>

/* Where @path, absolute, leads; what is missing is taken for a directory. Returns 0 or -errno. */
int walk_to(char real[PATH_MAX], const char *path);

/* Whether the way to @path leads through something that lies in @outer, which is real, or @or_same ends there; @at
 * is where it ends, if that is in there, or what it leads through. True also if there is no telling. */
bool walk_through(char at[PATH_MAX], const char *path, const char *outer, bool or_same);

/* Whether @inner lies in @outer; both are real. */
bool walk_within(const char *inner, const char *outer, bool or_same);
