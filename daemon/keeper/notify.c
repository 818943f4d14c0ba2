/* sd_notify(3) without its library: one datagram. */
#include "notify.h"

#include "proto/base.h"

#include <sys/socket.h>
#include <sys/un.h>

int notify_manager_of(const char *state, int about)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct iovec text = {.iov_base = (char *)state, .iov_len = strlen(state)};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_name = &address, .msg_iov = &text, .msg_iovlen = 1};
	_cleanup_(fd_closep) int fd = -1;
	const char *path = getenv("NOTIFY_SOCKET");
	size_t size = path ? strlen(path) : 0;

	if (size == 0 || size >= sizeof(address.sun_path) || !strchr("/@", *path))
		return -ENOENT;
	memcpy(address.sun_path, path, size);
	if (*path == '@')
		address.sun_path[0] = '\0';
	message.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
	if (about >= 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &about, sizeof(int));
		message.msg_control = control.room;
		message.msg_controllen = sizeof(control.room);
	}
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 || sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

void notify_manager(const char *state)
{
	(void)notify_manager_of(state, -1);
}

void notify_alive(void)
{
	if (getenv("WATCHDOG_USEC"))
		notify_manager("WATCHDOG=1");
}
