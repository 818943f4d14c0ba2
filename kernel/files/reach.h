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
	dev_t device;		     /* of the root: no other is entered */
	mode_t rights;		     /* which the owner needs for a directory */
	struct reach_opened *opened; /* the last one first */
	int fd;			     /* of the directory where the reach is; -1: the root */
	bool whole;		     /* that directory has all the rights that could be had */
	unsigned depth;
	ino_t inodes[PATH_MAX / 2 + 1]; /* of the directories on the way there, the root first */
	char path[PATH_MAX];		/* of the directory where it is */
};

void reach_init(struct reach *reach, int root, mode_t rights);
/* *@fdp: the directory @path, borrowed until the next call. Returns 0 or -errno: -ENOTDIR if it is a link or
 * another thing. What is asked for in the order of a walk is reached in a step or two, however deep it lies. */
int reach_directory(struct reach *reach, int *fdp, const char *path);
/* The directory of @path, borrowed, and its last component. */
int reach_parent(struct reach *reach, int *fdp, const char **namep, const char *path);
/* Open the regular file @path, with @access, also if its owner has not the right. Nothing else is
 * waited for. Returns the descriptor or -errno: -ELOOP if it is no regular file. */
int reach_file(struct reach *reach, const char *path, int access);
/* Whoever has the reach in a fork lets go of it. */
void reach_leave(struct reach *reach);
/* Directories get their modes again, unless somebody has changed them meanwhile. Returns 0 or the first -errno. */
int reach_shut(struct reach *reach);
/* The same for a while. If all had their modes, the reach stays where it is: the way back would be as long as that
 * is deep. */
int reach_pause(struct reach *reach);

/* A directory of the session's, not O_PATH, whatever its mode, which stays. */
int directory_open(int *fdp, int parent, const char *name);
