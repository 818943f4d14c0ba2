/* The options of one cell: the fields of `run` beside its code. */
#pragma once

#include <Python.h>

#include "proto/message.h"

/* Whether there is anything to set; if not, the other functions need not be called. */
bool options_wanted(const struct run_message *run);
/* Returns 0, or -1 with an exception that is the cell's. */
int options_set(const struct run_message *run);
void options_reset(void);
