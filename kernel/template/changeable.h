/* Files that sessions may write to could hold hostile code. A template is in no cage, so it takes no code from
 * there: neither as a module, nor because an environment looks for modules there. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "proto/base.h"

/* From now on nothing in one of @directories is opened, until changeable_end. @directories is an array of str
 * that must outlive this. */
void changeable_begin(struct bytes directories);
void changeable_end(void);

/* The sentence about a file that was to be opened; NULL: there was none. Static. */
const char *changeable_found(void);

/* For the audit hook. Returns 0, or -1 with an exception. */
int changeable_check(const char *event, PyObject *args);
