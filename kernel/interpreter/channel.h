/* An interpreter's end of its link to the router: one in each process; only its main thread reads it. */
#pragma once

#include "proto/channel.h"
#include "proto/wire.h"

/* From now on use @fd, which is taken over, with numbers from 1. The former channel is closed. -1: there is
 * none. */
void exec_channel_use(int fd);
bool exec_channel_there(void);
/* The descriptor of the channel, to wait for it beside others; -1: there is none. It stays the channel's. */
int exec_channel_descriptor(void);

/* Wait for the next message, while threads of the session run on. Until the next message its
 * frame is valid and its descriptors are open. Returns 0, CHANNEL_E_EOF or -errno. */
int exec_channel_receive(struct wire_frame *message);
/* Decode @message by @schema. Returns 0 or -EBADMSG. */
int exec_channel_decode(void *out, const struct wire_schema *schema, const struct wire_frame *message);
/* The descriptors of the last message, if there are @n; else NULL. */
const int *exec_channel_fds(size_t n);
/* Close the descriptors of the last message. */
void exec_channel_drop_fds(void);
/* Whether so few descriptors are left that a copy could not begin. Call it whenever a cell may have opened some:
 * it keeps room for the next message, whatever is open. */
bool exec_channel_cramped(void);

/* While it is, nothing here lets other threads run or needs memory: for a process without the threads that it
 * should have. */
void exec_channel_alone(bool alone);

/* Send @message, once the router has read enough. Returns 0 or -errno. -EAGAIN: it has not; then this has waited a
 * moment, in which other threads ran, and the caller decides whether to try again. */
int exec_channel_try(const struct wire_schema *schema, const void *message);
/* Try until it is sent. Returns 0 or -errno. */
int exec_channel_send(const struct wire_schema *schema, const void *message);
/* Whether the router has not read all messages yet. Then waits a moment, in which another thread may send. */
bool exec_channel_has_unread(void);

/* Whether there is a message that was not received yet. */
bool exec_channel_waits(void);
/* Wait until there is one. Signal handlers run meanwhile. Returns 0, or -EINTR if one of them ends what runs. */
int exec_channel_wait(void);

/* Empty @buffer for its next use, and free its memory if it is large. */
void exec_channel_trim(msgpack_sbuffer *buffer);
