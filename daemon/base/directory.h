/* Directories: where those of a daemon are, that they are there; and what is in any. */
#pragma once

#include "proto/base.h"

#include <dirent.h>
#include <limits.h>

/* Where a daemon keeps its @kind of things: @configured, or else the default place ($XDG_STATE_HOME or
 * ~/.local/state, as root /var/lib), and beneath it a name made of @socket, so that two daemons never share one.
 * Returns 0 or -errno. */
int directory_of_state(char path[PATH_MAX], const char *kind, const char *configured, const char *socket);

/* Make @path, for ourselves alone, and what is missing above it; or only that. Return 0 or -errno. */
int directory_make(const char *path);
int directory_make_parents(const char *path);

/* To read what is in @directory, which may be open with O_PATH and stays the caller's. NULL: errno says why. */
DIR *directory_read(int directory);
/* The next in it but itself and its parent. NULL: there is none, or errno is not 0. */
struct dirent *directory_next(DIR *dir);
