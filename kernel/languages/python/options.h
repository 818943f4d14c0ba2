/* The options of one cell: the fields of cell_options beside its code. */
#pragma once

#include <Python.h>

#include "proto/message.h"

/* Whether there is anything to set; if not, the other functions need not be called. */
bool options_wanted(const struct cell_options *options);
/* Returns 0, or -1 with an exception that is the cell's. */
int options_set(const struct cell_options *options);
void options_reset(void);
