/* Sends what a cell shows while it runs, for python/display.py. */
#pragma once

#include <Python.h>

/* New reference: publish(data, metadata, display_id, update, clear). NULL with an exception. */
PyObject *publish_new(void);
