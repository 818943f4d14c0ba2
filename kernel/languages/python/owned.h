/* A new reference of a function's own, which is dropped where its scope ends: OWNED *name = ...; NULL is fine. */
#pragma once

#include <Python.h>

#include "proto/base.h"

static inline void owned_drop(PyObject **objectp)
{
	Py_CLEAR(*objectp);
}

#define OWNED _cleanup_(owned_drop) PyObject
