/* Commands of a prompt that are short for a cell: !ls, %cd, %env, %time, %timeit. */
#pragma once

#include "cli.h"

struct shorthand {
	const char *name, *usage, *summary;
	const char *script; /* what runs, with `argument` and `names`; NULL: the argument itself */
};

extern const struct shorthand shorthands[];
extern const size_t n_shorthands;

/* The one that @text begins with, or NULL; then *@codep is the code of its cell, the caller's to free, NULL without
 * memory. */
const struct shorthand *shorthand_expand(struct lair_text text, char **codep);
