/* What sessions may write to is theirs, so a template, which is in no cage, takes no code from there: neither as a
 * module, nor because an environment looks for modules there. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "proto/base.h"

/* From now on nothing that lies in one of @directories, an array of str that has to outlive this, is opened; until
 * changeable_end. */
void changeable_begin(struct bytes directories);
void changeable_end(void);

/* The sentence about what was to be opened; NULL: nothing. Static. */
const char *changeable_found(void);

/* Of the audit hook. Returns 0, or -1 with an exception. */
int changeable_check(const char *event, PyObject *args);
