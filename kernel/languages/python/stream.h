/* sys.stdout and sys.stderr. */
#pragma once

#include <Python.h>

#include "observe/output.h"

/* New reference: the text stream for @which, see streams.py. NULL with an exception. Call it once
 * for each stream, in the template. */
PyObject *stream_new(enum output_stream which);

/* Write a str or bytes object as the stream does. Returns 0, or -1 with an exception. */
int stream_write(enum output_stream which, PyObject *text);
