/* What a tree takes up on the disk: summed over everything in it, piece by piece, so that whoever does it is never
 * busy for long. The tree is a hostile session's and changes meanwhile: the sum is of no one moment, but whatever
 * lies still while it is taken is in it. Files that have lost their last name are not. */
#pragma once

#include "proto/base.h"

struct survey_directory;

struct survey {
	uint64_t size, files; /* bytes stored; files, directories, links and whatever else has a name */
	uint64_t size_max, files_max;
	bool blind; /* some of it could not be looked into */
	int fd;	    /* of the directory being read, -1 between two */
	struct survey_directory *reading, *waiting;
};

#define SURVEY_NONE ((struct survey){.fd = -1})

/* Begin, giving up one that is under way. @root: absolute. It ends early once more than @size_max bytes or
 * @files_max files have been found. */
void survey_begin(struct survey *survey, const char *root, uint64_t size_max, uint64_t files_max);
/* Look at some @entries more. Returns whether it is complete; then it holds nothing but the sums. */
bool survey_step(struct survey *survey, unsigned entries);
