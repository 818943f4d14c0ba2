/* The process that runs cells. */
#pragma once

#include "cage/cage.h"

/* The descriptors that an interpreter gets from the router: its exec channel, its two pipes, the memory file
 * that buffers its output. */
enum interpreter_fd {
	INTERPRETER_CHANNEL,
	INTERPRETER_STDOUT,
	INTERPRETER_STDERR,
	INTERPRETER_BUFFERS,
	INTERPRETER_FDS
};

/* In the template, once, after Python has started: load the helpers, set sys.stdin, stdout and stderr, prepare
 * cells. Returns 0, or -1 with an exception. */
int interpreter_prepare(size_t text_max);

/* In the template, after its imports: run cells as a session would, so that they are fast there, and find the
 * generators that every fork must seed anew. It leaves no trace, except output on stdout and stderr. Returns 0,
 * or -1 with an exception. */
int interpreter_rehearse(void);

/* Whether the main thread waits for an answer of the client: then only it reads the channel. */
bool interpreter_is_asking(void);
/* Whether this is the thread that runs cells. */
bool interpreter_is_main(void);
/* Send from the running cell to the router, after all output before it. Returns 0, or -1 with an exception, for
 * example if no cell runs in this process. */
int interpreter_tell(const struct wire_schema *schema, const void *message);
/* The same, and before all output after it. Output takes another way, so if somebody watches it, this waits until
 * the router has read the message. */
int interpreter_show(const struct wire_schema *schema, const void *message);

/* In a fresh fork that holds the GIL: become an interpreter and serve @fds until the channel closes. @home: absent,
 * or the name of the copy of the workspace in which it works. */
_Noreturn void interpreter_run(const int fds[INTERPRETER_FDS], const struct cage *cage, struct bytes home);
