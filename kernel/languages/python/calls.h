/* Calls of the functions that the client of a cell offers, for python/functions.py. */
#pragma once

#include <Python.h>

#include "proto/wire.h"

/* @cell begins: its calls are numbered from 1. */
void calls_begin(uint64_t cell);
/* Whether @message is the answer to a call, which is passed on to who waits for it; or asks for a copy of the cell,
 * which waits for something else and is not copied. */
bool calls_heard(const struct wire_frame *message);

/* New reference: a dict of the functions in C that functions.py calls. NULL with an exception. */
PyObject *calls_methods(void);
