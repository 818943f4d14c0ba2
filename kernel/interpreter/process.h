/* The process of an interpreter: how a fork becomes one, leaves a frozen copy of itself, and is forked from such
 * a copy. */
#pragma once

#include "interpreter.h"

/* Make an interpreter: fork(), with the language told before and after. Returns as fork() does, but -errno. */
pid_t process_fork(void);
/* In such a fork: take over the router's descriptors. @home: the name of the copy of the
 * workspace to work in, or absent. Returns 0 or -errno. */
int process_become(const int fds[INTERPRETER_FDS], const struct cage *cage, struct bytes home);

/* Whether this is the process that the warden knows, and not a child of a cell. */
bool process_is_interpreter(void);

/* Back to the directory in which it started, unless that is the workspace. */
void process_start_over(void);

/* Answer `freeze` while @cell runs; 0: between two cells. @why: there can be no copy, for that reason; or NULL.
 * Returns in this process, and in each fork of the copy, with *@forked set. Returns 0 or -errno. */
int process_freeze(const struct wire_frame *message, uint64_t cell, const char *why, bool *forked);
