/* The process that runs cells. */
#pragma once

#include "cage/cage.h"
#include "proto/message.h"

/* The descriptors that an interpreter gets from the router: its exec channel, its two pipes, the memory file
 * that buffers its output. */
enum interpreter_fd {
	INTERPRETER_CHANNEL,
	INTERPRETER_STDOUT,
	INTERPRETER_STDERR,
	INTERPRETER_BUFFERS,
	INTERPRETER_FDS
};

/* In the template: run cells as a session would, so that they are fast there. They leave no trace. */
void interpreter_rehearse(const char *const *cells, size_t n);

/* Why the caller cannot ask the client; NULL if it can. */
const char *interpreter_cannot_ask(void);
/* Ask the client, and wait for the answer, which is valid until the next message. Returns 0, -EINTR if a signal
 * ends what runs, -EMSGSIZE, or -EPIPE if the session is ending. */
int interpreter_ask(struct answer_message *answer, const struct ask_message *question);

/* Whether the main thread waits for an answer of the client: then only it reads the channel. */
bool interpreter_is_asking(void);
/* Whether this is the thread that runs cells. */
bool interpreter_is_main(void);
/* Send from the running cell to the router, after all output before it. Returns 0; -EAGAIN if no cell runs in this
 * process; -EMSGSIZE; or another -errno if the session is ending. */
int interpreter_tell(const struct wire_schema *schema, const void *message);
/* The same, and before all output after it. Output takes another way, so if somebody watches it, this waits until
 * the router has read the message. -EINTR: a signal ends what runs, and the message is sent. */
int interpreter_show(const struct wire_schema *schema, const void *message);

/* In a fresh fork: become an interpreter and serve @fds until the channel closes. @home: absent,
 * or the name of the copy of the workspace in which it works. */
_Noreturn void interpreter_run(const int fds[INTERPRETER_FDS], const struct cage *cage, struct bytes home);
