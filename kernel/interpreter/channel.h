/* An interpreter's end of its link to the router: one in each process; only its main thread reads it. */
#pragma once

#include "proto/channel.h"
#include "proto/wire.h"

/* From now on use @fd, which is taken, with numbers from 1; the former one is closed. -1: none. */
void exec_channel_use(int fd);
bool exec_channel_there(void);
/* To wait for it beside other descriptors; -1: none. It stays the channel's. */
int exec_channel_descriptor(void);

/* The next message. Waits for it without the GIL, so threads of the session run on. Its frame is valid, and its
 * descriptors are open, until the next. Returns 0, CHANNEL_E_EOF or -errno. */
int exec_channel_receive(struct wire_frame *message);
/* Decode @message by @schema. Returns 0 or -EBADMSG. */
int exec_channel_decode(void *out, const struct wire_schema *schema, const struct wire_frame *message);
/* The descriptors of the message, if there are @n; else NULL. */
const int *exec_channel_fds(size_t n);
/* Close them. */
void exec_channel_drop_fds(void);
/* Whether so few descriptors are left that a copy could not begin. Call it whenever a cell may have opened some:
 * it keeps room for the next message, whatever is open. */
bool exec_channel_cramped(void);

/* Returns 0 or -errno; -EAGAIN: the router must read something first. Then it has waited a moment, in which
 * other threads ran, and the caller decides whether to try again. */
int exec_channel_try(const struct wire_schema *schema, const void *message);
/* Try until it is sent. Returns 0 or -errno. */
int exec_channel_send(const struct wire_schema *schema, const void *message);
/* Whether the router must read something first. Then waits a moment, in which another thread may send. */
bool exec_channel_unheard(void);

/* Whether the router has said something that was not received yet. */
bool exec_channel_waits(void);
/* Wait until it has. A signal ends the wait. Returns 0, or -1 with an exception. */
int exec_channel_wait(void);
