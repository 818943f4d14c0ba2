/* Directories of a tree, by descriptor. The tree's owner may have taken away the right to look into some, or to
 * pass: these are opened up, and shut again at the end. No link is followed. */
#pragma once

#include "proto/base.h"

#include <limits.h>
#include <sys/stat.h>

struct reach_opened {
	struct reach_opened *next;
	mode_t mode, mode_open; /* the mode that it gets at the end, and the one that it has until then */
	char path[];
};

struct reach {
	int root;		     /* the caller's, not O_PATH: the root may be shut, too */
	mode_t rights;		     /* which the owner needs for a directory */
	struct reach_opened *opened; /* the last one first */
	int fd;			     /* of the last directory that was asked for; -1: none */
	char path[PATH_MAX];
};

void reach_init(struct reach *reach, int root, mode_t rights);
/* *@fdp: the directory @path, borrowed until the next call. Returns 0 or -errno. */
int reach_directory(struct reach *reach, int *fdp, const char *path);
/* The directory of @path, borrowed, and its last component. */
int reach_parent(struct reach *reach, int *fdp, const char **namep, const char *path);
/* Open the regular file @path, which has @mode, with @access, also if its owner has not the right. Nothing else is
 * waited for. Returns the descriptor or -errno: -ELOOP if it is no regular file. */
int reach_file(struct reach *reach, const char *path, int access);
/* Whoever has the reach in a fork lets go of it. */
void reach_leave(struct reach *reach);
/* Directories get their modes again, unless somebody has changed them meanwhile. Returns 0 or the first -errno. */
int reach_shut(struct reach *reach);

/* A directory of the session's, not O_PATH, whatever its mode, which stays. */
int directory_open(int *fdp, int parent, const char *name);
