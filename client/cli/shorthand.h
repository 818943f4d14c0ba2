/* Commands of a prompt that are short for a cell: !ls, %cd, %env, %time, %timeit. */
#pragma once

#include "cli.h"

struct shorthand {
	const char *name, *usage, *summary;
	const char *script; /* the code that runs, with `argument` and `names`; NULL: the argument is the code */
};

extern const struct shorthand shorthands[];
extern const size_t n_shorthands;

/* The shorthand that @text begins with, or NULL. *@codep is the code of its cell, the caller's to free; NULL
 * without memory. */
const struct shorthand *shorthand_expand(struct lair_text text, char **codep);
