/* What the files of this directory share. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* In the template, once, after Python has started: load the helpers, set sys.stdout and stderr, prepare cells.
 * Returns 0, or -1 with an exception. */
int python_prepare(size_t text_max);

/* @r of interpreter_tell or interpreter_show: 0, or -1 with an exception. */
int python_told(int r);
