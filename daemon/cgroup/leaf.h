/* Version 2 lets a group have either processes or controlled children. For laird's own group to have children,
 * laird moves into one of them. */
#pragma once

#include "home.h"

#define CGROUP_LEAF "daemon"

/* Make the directory @path in the group we are in, and our leaf in it; move us and our parent into the leaf; and
 * extend @controllers to all further groups in @path. Each one that fails gets its error (positive) in @errors.
 * If all fail, nothing has changed. It is no error if this is done already. */
void leaf_enter(const char *path, unsigned controllers, int errors[static _CONTROLLER_N]);

/* Undo that, if it was done. Everything else in @path must have been removed. */
void leaf_leave(const char *path);
