/* Datagrams with descriptors. Whatever a peer passes is either handed to the caller or closed here: nothing leaks.
 */
#include "proto/channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

int channel_pair(int *oursp, int *theirsp)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) {
		int r = -errno;

		fd_close(fds[0]);
		fd_close(fds[1]);
		return r;
	}
	*oursp = fds[0];
	*theirsp = fds[1];
	return 0;
}

void channel_refuse_fds(int fd)
{
	const int off = 0;

	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

int channel_send(int fd, struct bytes data, const int *fds, size_t n_fds)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {.iov_base = (void *)data.data, .iov_len = data.size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;

	if (n_fds > CHANNEL_FDS_MAX)
		return -EINVAL;
	if (n_fds > 0) {
		struct cmsghdr *header;

		message.msg_control = control.space;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(header), fds, sizeof(int) * n_fds);
	}
	do
		n = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	if (errno == EAGAIN)
		return CHANNEL_E_EMPTY;
	return errno == EPIPE || errno == ECONNRESET ? CHANNEL_E_EOF : -errno;
}

void channel_take_fds(struct msghdr *message, int *fds, size_t *n_fds, size_t max)
{
	struct cmsghdr *header;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= header->cmsg_len; at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + at, sizeof(int));
			if (*n_fds < max)
				fds[(*n_fds)++] = fd;
			else
				fd_close(fd);
		}
	}
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the kernel writes to @buffer */
static int receive(int fd, int flags, char *buffer, size_t size, struct bytes *data, int fds[CHANNEL_FDS_MAX],
		   size_t *n_fds)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = buffer, .iov_len = size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.space,
				 .msg_controllen = sizeof(control.space)};
	ssize_t n;

	*n_fds = 0;
	for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
		fds[i] = -1;
	/* If a peer ended without having read everything, this is reported once, before what it had sent. */
	do
		n = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && errno == EAGAIN)
		return CHANNEL_E_EMPTY;
	if (n == 0)
		return CHANNEL_E_EOF;
	if (n < 0)
		return -errno;
	channel_take_fds(&message, fds, n_fds, CHANNEL_FDS_MAX);
	*data = (struct bytes){.data = buffer, .size = (size_t)n};
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		bool no_room = !(message.msg_flags & MSG_TRUNC) && *n_fds < CHANNEL_FDS_MAX;

		while (*n_fds > 0)
			fd_closep(&fds[--*n_fds]);
		return no_room ? -EMFILE : -EMSGSIZE;
	}
	return 0;
}

int channel_recv(int fd, char *buffer, size_t size, struct bytes *data, int fds[CHANNEL_FDS_MAX], size_t *n_fds)
{
	return receive(fd, 0, buffer, size, data, fds, n_fds);
}

int channel_peek(int fd, char *buffer, size_t size, struct bytes *data, int fds[CHANNEL_FDS_MAX], size_t *n_fds)
{
	return receive(fd, MSG_PEEK, buffer, size, data, fds, n_fds);
}

int channel_recv_frame(int fd, char *buffer, size_t size, struct wire_frame *frame)
{
	int fds[CHANNEL_FDS_MAX], r;
	struct bytes data;
	size_t n_fds;

	r = channel_recv(fd, buffer, size, &data, fds, &n_fds);
	for (size_t i = 0; !r && i < CHANNEL_FDS_MAX; i++)
		fd_closep(&fds[i]);
	return !r && wire_open(frame, data) ? -EBADMSG : r;
}
