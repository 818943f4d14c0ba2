/* sd_notify(3) without its library: one datagram. */
#include "notify.h"

#include "proto/base.h"

#include <sys/socket.h>
#include <sys/un.h>

void notify_manager(const char *state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_(fd_closep) int fd = -1;
	const char *path = getenv("NOTIFY_SOCKET");
	size_t size = path ? strlen(path) : 0;

	if (size == 0 || size >= sizeof(address.sun_path) || !strchr("/@", *path))
		return;
	memcpy(address.sun_path, path, size);
	if (*path == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
}

void notify_alive(void)
{
	if (getenv("WATCHDOG_USEC"))
		notify_manager("WATCHDOG=1");
}
