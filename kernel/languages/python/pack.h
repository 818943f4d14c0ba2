/* Python's own objects as msgpack. */
#pragma once

#include <Python.h>

#include "proto/wire.h"

/* New reference to a bytes object: @text, any str, as valid UTF-8. NULL with an exception. */
PyObject *utf8_of(PyObject *text);

/* How deep a value is nested at most: in most messages, and where it is an argument of a call, in their map. */
#define PACK_DEPTH 8
#define PACK_DEPTH_CALL (WIRE_DEPTH_MAX - 2)

/* Append @object, which is nested no deeper than @depth: None, bool, int, float, str, bytes, list, tuple or dict.
 * Of types derived from these only those of str and bytes are taken, so no code of a session runs. Text is made
 * valid UTF-8. Returns 0, or -1 with an exception. */
int pack_object(msgpack_sbuffer *buffer, PyObject *object, unsigned depth);

/* New reference: @raw, which anybody may have made, as None, bool, int, float, str, bytes, list and dict. NULL with
 * an exception. */
PyObject *unpack_object(struct bytes raw);

/* New reference: a list of the strings of @raw, which is an array of str. */
PyObject *unpack_strings(struct bytes raw);
