/* An interpreter's end of its link to the router: one a process, read by its main thread alone. */
#pragma once

#include "proto/channel.h"
#include "proto/wire.h"

/* From now on this one, which is taken, with numbers that begin anew; the former is closed. -1: none. */
void exec_channel_use(int fd);
bool exec_channel_there(void);
/* To wait for it beside other things; -1: none. It stays the channel's. */
int exec_channel_descriptor(void);

/* The next message, waiting for it without the GIL: threads of the session run on. Its frame is valid, and what
 * came along is open, until the next. Returns 0, CHANNEL_E_EOF or -errno. */
int exec_channel_receive(struct wire_frame *message);
/* @message as what it must be. Returns 0 or -EBADMSG. */
int exec_channel_decode(void *out, const struct wire_schema *schema, const struct wire_frame *message);
/* The descriptors that came along, if they are @n; else NULL. */
const int *exec_channel_fds(size_t n);
/* Close them. */
void exec_channel_drop_fds(void);
/* Whether so few descriptors are left that a copy could not begin. Asked whenever a cell may have opened some: from
 * then on the next message finds room for one, whatever is open. */
bool exec_channel_cramped(void);

/* Returns 0 or -errno; -EAGAIN: the router still has to hear something before it. Then a moment was waited, in
 * which other threads ran, and whether to try again is the caller's to say. */
int exec_channel_try(const struct wire_schema *schema, const void *message);
/* Again and again. Returns 0 or -errno. */
int exec_channel_send(const struct wire_schema *schema, const void *message);
/* Whether the router still has to hear something. Then waits a moment, in which another thread may send. */
bool exec_channel_unheard(void);

/* Whether the router has said something that was not received yet. */
bool exec_channel_waits(void);
/* Wait until it has. A signal ends the wait. Returns 0, or -1 with an exception. */
int exec_channel_wait(void);
