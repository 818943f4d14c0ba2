/* Looking things up beneath a directory without ever following a symbolic link, whatever somebody else does there
 * meanwhile. */
#pragma once

#include "proto/base.h"

#include <limits.h>

/* An O_PATH descriptor of @path beneath @root, the caller's. @path is relative, without "." and "..", or "." alone;
 * its last component may be a link itself, which is then what is found. @one_device: on the file system of @root
 * alone. Returns 0 or -errno: -ELOOP for a link on the way, -EXDEV for another file system. */
int beneath_find(int *fdp, int root, const char *path, bool one_device);

/* The first component of *@restp, which is not at its end and moves on to the next. Returns 0 or -ENAMETOOLONG. */
int beneath_next(const char **restp, char name[NAME_MAX + 1]);
