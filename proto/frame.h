/* Length-prefixed frames on a stream descriptor: four bytes, little-endian, then that many bytes.
 *
 * The reader trusts nothing: a length over its maximum is a violation before a byte of it is read. The writer never
 * blocks on a non-blocking descriptor: what does not fit waits in it. */
#pragma once

#include "proto/base.h"

enum {
	_FRAME_E_SUCCESS,
	FRAME_E_EMPTY, /* no whole frame yet */
	FRAME_E_EOF,   /* the peer has closed */
	FRAME_E_SIZE,  /* the declared length is over the maximum */
};

struct frame_reader {
	char *data;
	size_t max, allocated, start, end;
};

void frame_reader_init(struct frame_reader *reader, size_t max);
void frame_reader_deinit(struct frame_reader *reader);

/* One read(). Returns 0 if bytes came, FRAME_E_EMPTY on EAGAIN, FRAME_E_EOF, or -errno. Restarts on EINTR unless
 * the descriptor is blocking and @interruptible, then returns -EINTR. Descriptors passed along are dropped by the
 * kernel, since plain read() is used. Frames returned earlier are invalid after this call. */
int frame_reader_fill(struct frame_reader *reader, int fd, bool interruptible);

/* The same by recvmsg, adding descriptors that came along to @fds, which holds *@n_fds of @max; more are closed.
 * They are close-on-exec and the caller's. */
int frame_reader_fill_fds(struct frame_reader *reader, int fd, bool interruptible, int *fds, size_t *n_fds,
			  size_t max);

/* The next whole frame, valid until the next fill. Returns 0, FRAME_E_EMPTY or FRAME_E_SIZE. */
int frame_reader_next(struct frame_reader *reader, struct bytes *frame);

struct frame_writer {
	char *data;
	size_t allocated, start, end;
};

void frame_writer_init(struct frame_writer *writer);
void frame_writer_deinit(struct frame_writer *writer);

/* Queue one frame. Returns 0 or -ENOMEM. */
int frame_writer_put(struct frame_writer *writer, struct bytes frame);

/* Write what is queued (MSG_NOSIGNAL on sockets). Returns 0 when all is out, FRAME_E_EMPTY when the descriptor
 * would block and some is left, FRAME_E_EOF on EPIPE or ECONNRESET, or -errno. */
int frame_writer_flush(struct frame_writer *writer, int fd);
