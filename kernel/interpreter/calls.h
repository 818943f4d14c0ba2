/* Calls of the functions that the client of a cell offers, for python/functions.py. */
#pragma once

#include <Python.h>

#include "proto/wire.h"

/* A cell begins: its calls are numbered from 1. */
void calls_begin(void);
/* Whether @message is the answer to a call; then it is passed on to who waits for it. */
bool calls_heard(const struct wire_frame *message);

/* New reference: a dict of the functions in C that functions.py calls. NULL with an exception. */
PyObject *calls_methods(void);
