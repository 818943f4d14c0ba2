/* The process that runs cells. */
#pragma once

#include "cage/cage.h"

/* What an interpreter gets of the router: its exec channel, its two pipes, the memory file its output is buffered
 * in. */
enum interpreter_fd {
	INTERPRETER_CHANNEL,
	INTERPRETER_STDOUT,
	INTERPRETER_STDERR,
	INTERPRETER_BUFFERS,
	INTERPRETER_FDS
};

/* In the template, once, with Python up: load the helpers, put sys.stdin, stdout and stderr in place, prepare
 * cells. Returns 0, or -1 with an exception. */
int interpreter_prepare(size_t text_max);

/* In the template, after its imports: run cells as a session would, so that they are fast there, and find what
 * every fork has to seed anew. Leaves no trace, but writes to stdout and stderr. Returns 0, or -1 with an
 * exception. */
int interpreter_rehearse(void);

/* From the running cell to the router, after all output before it. Returns 0, or -1 with an exception: no cell
 * runs, or not here. */
int interpreter_tell(const struct wire_schema *schema, const void *message);

/* In a fresh fork that holds the GIL: become an interpreter and serve @fds until the channel closes. @home: absent,
 * or the name of the copy of the workspace that it works in. */
_Noreturn void interpreter_run(const int fds[INTERPRETER_FDS], const struct cage *cage, struct bytes home);
