/* Look up a path beneath a directory without ever following a symbolic link, even if somebody else changes
 * things there meanwhile. */
#pragma once

#include "proto/base.h"

#include <limits.h>

/* An O_PATH descriptor of @path beneath @root, the caller's. @path is relative, without "." and "..", or "."
 * alone; if its last component is a link, the link itself is found. @one_device: only on the file system of
 * @root. Returns 0 or -errno: -ELOOP for a link on the way, -EXDEV for another file system. */
int beneath_find(int *fdp, int root, const char *path, bool one_device);

/* The first component of *@restp, which must not be at its end; *@restp moves on to the next. Returns 0 or
 * -ENAMETOOLONG. */
int beneath_next(const char **restp, char name[NAME_MAX + 1]);
