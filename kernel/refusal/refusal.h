/* Things the cage refuses, told to the user of a session: as an exception, and an entry in the list of the cell, in
 * case that nobody sees the exception. */
#pragma once

#include <Python.h>

#include "proto/wire.h"

struct refusal {
	const char *event, *kind; /* kind: path, command, address, ... */
	char target[512];
	const char *reason;
};

/* The target: @text as something that fits on one line of valid UTF-8. */
void refusal_target(struct refusal *refusal, struct bytes text);

/* In the template, after Python is up. Returns 0, or -1 with an exception. */
int refusals_prepare(void);

/* Tell it. New reference: an error as the kernel's are, with @number as its errno, the line as its strerror, and
 * @filename and @filename2 (borrowed, may be NULL); but its text is the line and nothing else. Its type is named
 * PermissionError and derived from that. NULL with an exception set when there is no memory for one. */
PyObject *refusal_error(const struct refusal *refusal, int number, PyObject *filename, PyObject *filename2);

/* Start of a cell: forget what was refused. End of a cell: the array of blocked_act maps for `done`, borrowed until
 * the next refusals_forget; absent (NULL data) when nothing was. */
void refusals_forget(void);
struct bytes refusals_list(void);
