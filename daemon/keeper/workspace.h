/* The workspaces: directories that sessions work in, all in one root that belongs to this daemon alone. A
 * session's id never becomes a path. */
#pragma once

#include "proto/base.h"

#include <limits.h>
#include <sys/types.h>

struct workspaces {
	int fd;	    /* the root */
	char *path; /* absolute */
};

/* Open or make the root, as directory_of_state says. @stale is called for each name that an earlier daemon left
 * there. Returns 0 or -errno. */
int workspaces_open(struct workspaces *workspaces, const char *configured, const char *socket,
		    void (*stale)(void *userdata, const char *path), void *userdata);
void workspaces_close(struct workspaces *workspaces);

/* A fresh directory for @uid (0 = ourselves); its name says if it is to be kept. @pathp is the caller's to free.
 * Returns 0 or -errno. */
int workspace_create(char **pathp, const struct workspaces *workspaces, uint64_t serial, uid_t uid, bool keep);
/* Whether the directory that an earlier daemon left at @path is to be kept. */
bool workspace_is_kept(const char *path);

/* The directory at @path, as an O_PATH descriptor, the caller's. Returns 0 or -errno. */
int workspace_handle(int *fdp, const char *path);

/* Remove the tree @name in @directory, or AT_FDCWD. It never follows a link or leaves the tree, however deep it
 * is and whatever another process does in it. Returns 0 or -errno of the first failure. May take long: the router
 * never calls it. */
int workspace_remove_tree(int directory, const char *name);
