/* Directories: find those of a daemon, make them, and read any. */
#pragma once

#include "proto/base.h"

#include <dirent.h>
#include <limits.h>

/* The directory of a daemon for one @kind of files: in @configured, or else in the default place
 * ($XDG_STATE_HOME or ~/.local/state, as root /var/lib), under a name made of @socket, so that two daemons never
 * share one. Returns 0 or -errno. */
int directory_of_state(char path[PATH_MAX], const char *kind, const char *configured, const char *socket);

/* Make @path, readable to ourselves alone, and missing directories above it; or only the latter. Return 0 or
 * -errno. */
int directory_make(const char *path);
int directory_make_parents(const char *path);

/* Open @directory for reading; it may be open with O_PATH and stays the caller's. NULL: errno says why. */
DIR *directory_read(int directory);
/* The next entry except "." and "..". NULL: there is none, or errno is not 0. */
struct dirent *directory_next(DIR *dir);
