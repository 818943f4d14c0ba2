/* Sets of packages that this session has, for laird to see: none of these is removed. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* hold(PATH), a function for python/packages.py: from now on somebody has the file open, for as long as this
 * process or a copy of it lives. It does not take a descriptor. OSError: the file is not there, or not any more. */
PyObject *sets_hold_new(void);
/* have(NAME), likewise: the session has that set from now on, which laird tells those who ask which has it. */
PyObject *sets_have_new(void);
