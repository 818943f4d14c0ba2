/* A requirement: the name of a project, and perhaps extras, versions and a marker, as PEP 508 has them. Nothing
 * else: no address, no path, no option. */
#pragma once

#include "proto/base.h"

#define REQUIREMENT_SIZE 512
#define REQUIREMENTS_MAX 256

/* Writes @text as one form for all that mean the same: the name in lower case, each run of dashes, dots and
 * underscores one dash, no blanks. Returns 0 with the length of the name in *@namep, or -EINVAL. */
int requirement_normalize(char out[static REQUIREMENT_SIZE], size_t *namep, struct bytes text);
