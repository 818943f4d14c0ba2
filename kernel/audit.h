/* The audit hook: explains to the user of a session what the cage refuses, at the Python level, by name. It is not
 * a guard: one ctypes write removes it. */
#pragma once

#include "proto/message.h"

/* Before Py_Initialize, so that it can be neither found nor removed from Python. Until audit_arm nothing is
 * refused. */
int audit_install(void);

/* In the template, once. Keeps what the hook needs to know of the policy: directories, network, subprocess.
 * @python_dirs as in cage_prepare. Returns 0 or -errno. */
int audit_configure(const struct configure_message *configure, char *const python_dirs[]);

/* In the warden after the cage stands. @workspace and, if any, @scratch become the writable places beside the
 * profile's. */
int audit_arm(const char *workspace);

/* Start of a cell: forget what was blocked. End of a cell: the array of blocked_act maps for `done`, borrowed until
 * the next audit_begin_cell; absent (NULL data) when nothing was. */
void audit_begin_cell(void);
struct bytes audit_blocked(void);
