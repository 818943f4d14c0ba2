/* Things the cage refuses, told to the user of a session: as an exception, a line on stderr and an entry in the
 * list of the cell. */
#pragma once

#include <Python.h>

#include "proto/wire.h"

struct refusal {
	const char *event, *kind; /* kind: path, command, address, ... */
	char target[512], mode[16];
	const char *reason;
};

/* The target: @text as something that fits on one line of valid UTF-8. */
void refusal_target(struct refusal *refusal, struct bytes text);

/* Tell it. New reference: a PermissionError whose text is only that line, though it carries @number as its errno,
 * as others of its kind do; NULL with an exception set when there is no memory for one. */
PyObject *refusal_error(const struct refusal *refusal, int number);

/* Start of a cell: forget what was refused. End of a cell: the array of blocked_act maps for `done`, borrowed until
 * the next refusals_forget; absent (NULL data) when nothing was. */
void refusals_forget(void);
struct bytes refusals_list(void);
