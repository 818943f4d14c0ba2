/* A walk over a tree, piece by piece, so that the process is never busy for long. The tree may belong to somebody
 * hostile and change meanwhile: directories are reached by descriptor, and no link is followed. */
#pragma once

#include "reach.h"

#include <dirent.h>

/* Copies for branches lie there, in the root: a visitor does not enter it, because they are trees of their own. */
#define BRANCHES ".branches"

enum {
	WALK_ON,    /* with the next entry */
	WALK_INTO,  /* it is a directory to be read, too, later on */
	WALK_LEAVE, /* the rest of this directory is of no interest */
};

struct walk_directory;

struct walk {
	struct reach reach;
	int fd;		  /* of the directory that is being read; -1 between two directories */
	const char *path; /* of that directory; "": the root */
	size_t tag;	  /* of that directory */
	size_t tag_below; /* for the directory that is entered with WALK_INTO; the visitor's */
	const struct walk_visitor *visitor;
	void *userdata;
	struct walk_directory *reading, *waiting;
	char buffer[PATH_MAX];
};

#define WALK_NONE                                                                                                  \
	{                                                                                                          \
		.fd = -1, .reach = {.root = -1, .fd = -1 }                                                         \
	}

/* Each may return -errno, which ends the walk. */
struct walk_visitor {
	/* A directory, before its first entry is read; NULL: nothing. */
	int (*enter)(struct walk *walk);
	/* An entry, none of "." and "..". @type: DT_DIR, ...; DT_UNKNOWN: it has gone meanwhile. */
	int (*see)(struct walk *walk, const char *name, unsigned char type);
	/* A directory cannot be read: the one at hand; or, if that is -1, @path with `tag`. -ENAMETOOLONG: @path
	 * is only its name. */
	int (*lost)(struct walk *walk, const char *path, int r);
};

/* @root: the caller's, not O_PATH, or -1: an empty walk. @rights: which the owner needs for a directory. */
int walk_begin(struct walk *walk, int root, mode_t rights, const struct walk_visitor *visitor, void *userdata);
/* See @entries more, or somewhat more than that. Directories that were opened up stay so until reach_shut(), which
 * may be called between two steps. Returns 0 at the end, 1 if there is more, or -errno. */
int walk_step(struct walk *walk, unsigned entries);
bool walk_busy(const struct walk *walk);
/* Lets go of everything; not of directories that were opened up. */
void walk_end(struct walk *walk);
/* Lets go of the descriptors alone, in a fork. */
void walk_leave(struct walk *walk);

/* Whether it is the directory of the copies for branches. */
bool walk_is_branches(const struct walk *walk, const char *name);
/* Whether -@r says that something has been removed or replaced meanwhile. */
bool walk_has_gone(int r);
