/* Datagrams with descriptors over a SOCK_SEQPACKET pair: the channel between laird, templates and wardens. */
#pragma once

#include "proto/wire.h"

#define CHANNEL_FDS_MAX 8
#define CHANNEL_SIZE_MAX 65536

enum {
	_CHANNEL_E_SUCCESS,
	CHANNEL_E_EMPTY, /* would block */
	CHANNEL_E_EOF,	 /* the peer is gone */
};

/* Both ends close-on-exec; @ours also non-blocking. Returns 0 or -errno. */
int channel_pair(int *oursp, int *theirsp);

/* From now on nobody can send descriptors to @fd, if the kernel can refuse them (Linux 6.16). An unwanted
 * descriptor has to be closed, and the sender can make closing it take as long as it likes. */
void channel_refuse_fds(int fd);

/* Send one datagram with @n_fds descriptors, which stay the caller's. Returns 0, CHANNEL_E_EMPTY, CHANNEL_E_EOF or
 * -errno. */
int channel_send(int fd, struct bytes data, const int *fds, size_t n_fds);

/* Add the descriptors of a received message to @fds, which holds *@n_fds of @max; more are closed. */
struct msghdr;
void channel_take_fds(struct msghdr *message, int *fds, size_t *n_fds, size_t max);

/* Receive one datagram into @buffer. Up to CHANNEL_FDS_MAX descriptors arrive in @fds, close-on-exec and the
 * caller's to close; unused slots are -1. A datagram that is longer than @size, or has more descriptors, is
 * -EMSGSIZE. If this process has no room for all descriptors, which is no fault of the sender, it is -EMFILE:
 * @data is whole and there are no @fds. In both cases nothing is left open. Restarts on EINTR. Returns 0 (then
 * @data points into @buffer), CHANNEL_E_EMPTY, CHANNEL_E_EOF or -errno. */
int channel_recv(int fd, char *buffer, size_t size, struct bytes *data, int fds[CHANNEL_FDS_MAX], size_t *n_fds);

/* The same, but the datagram stays and will be received again, with descriptors of its own. */
int channel_peek(int fd, char *buffer, size_t size, struct bytes *data, int fds[CHANNEL_FDS_MAX], size_t *n_fds);

/* The same where no descriptors are wanted: those that come are closed. -EBADMSG: it is no frame. */
int channel_recv_frame(int fd, char *buffer, size_t size, struct wire_frame *frame);
