/* A survey adds up how much disk a tree takes, piece by piece, so that the process is never busy for long. The
 * tree belongs to a hostile session and changes meanwhile. The sum is of no single moment, but it includes
 * everything that does not move. Files without a name are not in it. */
#pragma once

#include "walk.h"

struct survey {
	uint64_t size, files; /* bytes on disk; how many files, directories, links and other things with a name */
	uint64_t size_max, files_max;
	bool blind; /* some directories could not be read */
	struct walk walk;
};

#define SURVEY_NONE                                                                                                \
	{                                                                                                          \
		.walk = WALK_NONE                                                                                  \
	}

/* Begin a survey. A survey under way is given up. @root: absolute. It ends early once more than @size_max bytes or
 * @files_max files have been found. */
void survey_begin(struct survey *survey, const char *root, uint64_t size_max, uint64_t files_max);
/* Look at @entries more. Returns whether the survey is complete; then it holds nothing but the sums. */
bool survey_step(struct survey *survey, unsigned entries);
