/* Accepting connections. One descriptor is kept in reserve. If none are left, a connection is accepted with it
 * and closed; otherwise the listening socket would be ready for ever. */
#include "admission.h"

#include "proto/channel.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#define ANCESTORS_MAX 64

static int reserve_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void admission_init(struct admission *admission, pid_t keeper)
{
	*admission = (struct admission){.keeper = keeper, .reserve = reserve_open()};
}

void admission_deinit(struct admission *admission)
{
	fd_closep(&admission->reserve);
}

static int refuse(const char **whyp, const char *why)
{
	*whyp = why;
	return ADMISSION_E_REFUSED;
}

static pid_t parent_of(pid_t pid)
{
	char path[32], text[512], *after;
	ssize_t n;
	int fd, parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	fd_close(fd);
	text[MAX(n, 0)] = '\0';
	after = strrchr(text, ')');
	return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Wardens are the keeper's children, and a cage lets no process out of reach of its warden. */
static bool is_caged(pid_t pid, pid_t keeper)
{
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (pid == keeper)
			return true;
		pid = parent_of(pid);
	}
	return false;
}

/* The connection is closed; that of a listener with nobody waiting stays as it was. */
static int accept_by_reserve(struct admission *admission, int listener, const char **whyp)
{
	int fd;

	admission->reserve = fd_close(admission->reserve);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	fd_close(fd);
	admission->reserve = reserve_open();
	return fd < 0 ? ADMISSION_E_EMPTY : refuse(whyp, "there are no descriptors left");
}

int admission_accept(struct admission *admission, int listener, int *fdp, uid_t *uidp, const char **whyp)
{
	_cleanup_(fd_closep) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	socklen_t size = sizeof(struct ucred);
	struct ucred peer;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? accept_by_reserve(admission, listener, whyp)
							  : ADMISSION_E_EMPTY;
	channel_refuse_fds(fd);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return refuse(whyp, "nobody knows whose it is");
	if (is_caged(peer.pid, admission->keeper))
		return refuse(whyp, "it came out of a cage");
	*uidp = peer.uid;
	*fdp = steal_fd(&fd);
	return 0;
}

int admission_groups(gid_t **groupsp, int fd)
{
	socklen_t size = sizeof(struct ucred), space = 0;
	struct ucred peer;
	gid_t *groups;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	/* It says how much there is to be room for. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &space) < 0 && errno != ERANGE)
		return -errno;
	groups = malloc(space + sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	groups[0] = peer.gid;
	if (space > 0 && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &space) < 0) {
		free(groups);
		return -errno;
	}
	*groupsp = groups;
	return (int)(space / sizeof(*groups)) + 1;
}
