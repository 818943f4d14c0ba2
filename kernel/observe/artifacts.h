/* The files of the workspace that a cell has created or changed. */
#pragma once

#include "proto/wire.h"

#include <time.h>

/* In the warden, and in a branch with files of its own: the directory that paths are relative to. */
void artifacts_home(const char *workspace);
/* What has been written until now, the next cell has not written, even if it begins in the same tick. */
void artifacts_of_others(void);
/* The directory that artifacts_home has set. */
const char *artifacts_root(void);

/* Whether a cell that begins @now would seem to have changed a file that was changed at @newest; zeroes: there is
 * no such file. This is so for a tick of the clock, or for as long as the clock was set back, but not for a second
 * or more. */
bool artifacts_too_soon(struct timespec newest, struct timespec now);

/* What a cell has done to the workspace. */
struct artifacts_found {
	struct bytes files; /* an array of `artifact` maps, absent if there are none */
	bool more;	    /* there are more files */
	bool changed;	    /* something has: a file, a name, a directory, or what is mapped */
	bool strangers;	    /* processes that this one cannot wait for may live, and write */
	struct bytes
		mapped; /* an array of the inodes of files that are mapped for writing, absent if there are none */
};

/* Around a cell. @changing: Python has seen the cell open a file for writing, or do something that may write. The
 * arrays are borrowed until the next begin. */
void artifacts_begin(void);
struct artifacts_found artifacts_end(bool changing);
