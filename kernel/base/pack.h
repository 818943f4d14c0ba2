/* Python's own objects as msgpack. */
#pragma once

#include <Python.h>

#include "proto/wire.h"

/* Append @object: None, bool, int, float, str, bytes, list, tuple or dict, exactly, so that no code of a session
 * runs. Text is made valid UTF-8. Returns 0, or -1 with an exception. */
int pack_object(msgpack_sbuffer *buffer, PyObject *object);
/* Between two uses of it: give back the memory of a large one. */
void pack_trim(msgpack_sbuffer *buffer);

/* New reference: the strings of @raw, an array of str, as a list. */
PyObject *unpack_strings(struct bytes raw);
