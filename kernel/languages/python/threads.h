/* How many threads the libraries under numpy may start. A template imports with one, since a fork copies one. */
#pragma once

#include "proto/base.h"

/* Before Python starts, when the profile's own variables are set: those that it names stay as they are. */
void threads_begin(void);

/* Sets @n for the libraries that are loaded, and in the environment for those that are loaded later. None of their
 * threads exists afterwards: each fork starts its own when it computes with them. Returns 0, or -1 with @reason. */
int threads_allow(unsigned n, char *reason, size_t size);
