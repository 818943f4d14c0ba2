/* One daemon for each socket. The lock file is removed with its daemon, so after locking we check that the file
 * still has its name: a lock on a removed file holds nothing. */
#include "instance.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define LOCK_TRIES 100

static int lock_path(char path[static PATH_SIZE], const struct instance *instance)
{
	int n = snprintf(path, PATH_SIZE, "%s.lock", instance->socket);

	return n < 0 || n >= PATH_SIZE ? -ENAMETOOLONG : 0;
}

/* Returns 0, INSTANCE_E_RUNNING, -EAGAIN if the file was removed meanwhile, or -errno. */
static int lock_take(int *lockp, const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat ours, named;

	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? INSTANCE_E_RUNNING : -errno;
	if (fstat(fd, &ours) < 0)
		return -errno;
	if (lstat(path, &named) < 0 || named.st_ino != ours.st_ino || named.st_dev != ours.st_dev)
		return -EAGAIN;
	*lockp = steal_fd(&fd);
	return 0;
}

int instance_init(struct instance *instance, const char *socket)
{
	char path[PATH_SIZE], directory[PATH_SIZE];
	int r;

	*instance = (struct instance){.lock = -1, .listener = -1};
	if (strlen(socket) >= sizeof(instance->socket))
		return -ENAMETOOLONG;
	memcpy(instance->socket, socket, strlen(socket) + 1);
	r = lock_path(path, instance);
	if (r == 0)
		r = path_directory(directory, socket);
	if (r < 0)
		return r;
	r = -EAGAIN;
	/* Try again if a daemon ends at this very moment. */
	for (int i = 0; r == -EAGAIN && i < LOCK_TRIES; i++) {
		bool missing = access(directory, F_OK) < 0;

		r = path_make_socket_dir(socket);
		if (r < 0)
			return r;
		instance->made_directory |= missing;
		r = lock_take(&instance->lock, path);
	}
	return r;
}

static int inode_find(uint64_t *inodep, const char *socket)
{
	struct stat status;

	if (lstat(socket, &status) < 0)
		return -errno;
	*inodep = status.st_ino;
	return S_ISSOCK(status.st_mode) ? 0 : -ENOTSOCK;
}

int instance_listen(struct instance *instance)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t mask;
	int r;

	if (strlen(instance->socket) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, instance->socket, strlen(instance->socket) + 1);
	if (unlink(instance->socket) < 0 && errno != ENOENT)
		return -errno;
	instance->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (instance->listener < 0)
		return -errno;
	mask = umask(0177);
	r = bind(instance->listener, (const struct sockaddr *)&address, sizeof(address));
	r = r < 0 || listen(instance->listener, SOMAXCONN) < 0 ? -errno : 0;
	umask(mask);
	return r ? r : inode_find(&instance->inode, instance->socket);
}

int instance_share(const struct instance *instance, mode_t mode, gid_t group)
{
	char directory[PATH_SIZE];
	struct stat status;
	int r = path_directory(directory, instance->socket);

	if (r < 0)
		return r;
	if (group != (gid_t)-1 && lchown(instance->socket, (uid_t)-1, group) < 0)
		return -errno;
	/* In a directory that only we may write to it is the socket that we have bound. */
	if (chmod(instance->socket, mode) < 0)
		return -errno;
	if (!(mode & 0066))
		return 0;
	if (stat(directory, &status) < 0)
		return -errno;
	return chmod(directory, (status.st_mode & 07777) | S_IXGRP | S_IXOTH) < 0 ? -errno : 0;
}

static bool listens(int fd)
{
	int yes = 0;
	socklen_t size = sizeof(yes);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &size) == 0 && yes;
}

int instance_inherit(struct instance *instance, int listener, uint64_t inode)
{
	uint64_t named = 0;
	int r;

	if (!listens(listener))
		return -ENOTSOCK;
	r = inode_find(&named, instance->socket);
	if (r || named != inode || instance->listener >= 0)
		return r ? r : -EEXIST;
	instance->listener = listener;
	instance->inode = inode;
	instance->handed_on = true;
	return 0;
}

int instance_adopt(struct instance *instance, int listener)
{
	struct sockaddr_un address = {0};
	socklen_t size = sizeof(address) - 1; /* a longer name is not ours, and this one then ends with a zero */
	uint64_t inode = 0;
	int r;

	if (!listens(listener) || getsockname(listener, (struct sockaddr *)&address, &size) < 0 ||
	    address.sun_family != AF_UNIX || strcmp(address.sun_path, instance->socket) != 0)
		return -ENOTSOCK;
	r = inode_find(&inode, instance->socket);
	if (!r)
		r = instance_inherit(instance, listener, inode);
	if (!r)
		r = fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK) < 0 ? -errno : 0;
	return r;
}

void instance_refuse(struct instance *instance)
{
	fd_closep(&instance->listener);
}

int instance_name(char name[static INSTANCE_NAME_SIZE], pid_t keeper)
{
	unsigned long long began;
	char path[32], text[1024], *after;
	_cleanup_(fd_closep) int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", keeper);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	after = strrchr(text, ')');
	/* The 22nd field; the third follows the parenthesis. */
	if (!after ||
	    sscanf(after + 1, "%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%llu", &began) != 1)
		return -EINVAL;
	snprintf(name, INSTANCE_NAME_SIZE, "%d-%llu", keeper, began);
	return 0;
}

void instance_deinit(struct instance *instance)
{
	char path[PATH_SIZE], directory[PATH_SIZE];

	if (instance->lock < 0)
		return;
	instance_refuse(instance);
	if (!instance->handed_on)
		(void)unlink(instance->socket);
	if (lock_path(path, instance) == 0)
		(void)unlink(path);
	if (instance->made_directory && path_directory(directory, instance->socket) == 0)
		(void)rmdir(directory);
	instance->lock = fd_close(instance->lock);
}
