/* Calls of the functions that the client of a cell offers, for python/functions.py. */
#pragma once

#include <Python.h>

/* New reference: a dict of the functions in C that functions.py calls. NULL with an exception. */
PyObject *calls_methods(void);
