/* Python's own objects as msgpack. */
#pragma once

#include <Python.h>

#include "proto/wire.h"

/* Append @object: None, bool, int, float, str, bytes, list, tuple or dict. Types derived from these are refused, so
 * no code of a session runs. Text is made valid UTF-8. Returns 0, or -1 with an exception. */
int pack_object(msgpack_sbuffer *buffer, PyObject *object);
/* Between two uses of @buffer: free its memory if it is large. */
void pack_trim(msgpack_sbuffer *buffer);

/* New reference: a list of the strings of @raw, which is an array of str. */
PyObject *unpack_strings(struct bytes raw);
