/* The process of an interpreter: how a fork becomes one, leaves a frozen copy of itself, and comes alive from that.
 */
#pragma once

#include "interpreter.h"

/* In a fresh fork that holds the GIL: take over what the router sent, and work in the copy of that name of the
 * workspace, if it has one. Returns 0 or -errno. */
int process_become(const int fds[INTERPRETER_FDS], const struct cage *cage, struct bytes home);

/* Whether this is the process that the warden knows, and no child of a cell's. */
bool process_is_interpreter(void);

/* Answer `freeze`. Returns in this process, and in each that is ever forked of the copy. Returns 0 or -errno. */
int process_freeze(const struct wire_frame *message);
