/* Refusals: they tell the user of a session what the cage has refused, by an exception, and by an entry in the
 * list of the cell in case nobody sees the exception. */
#pragma once

#include <Python.h>

#include "proto/wire.h"

struct refusal {
	const char *event, *kind; /* kind: path, command, address, ... */
	char target[512];
	const char *reason;
};

/* Set the target: @text as one line of valid UTF-8. */
void refusal_target(struct refusal *refusal, struct bytes text);

/* In the template, after Python is up. Returns 0, or -1 with an exception. */
int refusals_prepare(void);
/* In the template: @sentence says how this profile gets packages. It is the advice for commands that install some.
 */
void refusals_set_packages(struct bytes sentence);
/* For the part in Python: refused(reason, command) is the text of that refusal, with its advice; installs(command)
 * tells whether a command would install packages. New reference: a dict, or NULL with an exception. */
PyObject *refusals_methods(void);

/* Puts the refusal into the cell's list and makes an exception. New reference: an error like the kernel's, with
 * @number as its errno, the line as its strerror, and @filename and @filename2 (borrowed, may be NULL). But its
 * text is the line and nothing else. Its type is named PermissionError and derived from it. NULL with an exception
 * set if there is no memory for it. */
PyObject *refusal_error(const struct refusal *refusal, int number, PyObject *filename, PyObject *filename2);

/* Start of a cell: forget all refusals. End of a cell: the array of blocked_act maps for `done`, borrowed until
 * the next refusals_forget; absent (NULL data) if nothing was refused. */
void refusals_forget(void);
struct bytes refusals_list(void);
