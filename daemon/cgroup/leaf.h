/* Version 2 lets a group have either processes or controlled children. For laird's own group to have children,
 * laird moves into one of them. */
#pragma once

#include "place.h"

#define CGROUP_LEAF "daemon"

/* Make the directory @path in the group we are in, and our leaf in that; move us and our parent there; and have the
 * @controllers extended to whatever else is made in @path. Each that cannot be gets its error (positive) in
 * @errors. If that is all of them, nothing has changed. Done already is no error. */
void leaf_enter(const char *path, unsigned controllers, int errors[static _CONTROLLER_N]);

/* Undo that, where it was done. Everything else in @path must have been removed. */
void leaf_leave(const char *path);
