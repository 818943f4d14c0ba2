/* If the kernel has openat2, it keeps the resolution beneath the directory. Otherwise we go component by
 * component, each from the descriptor of the one before, and none through a link. */
#include "proto/beneath.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* From linux/openat2.h, which the headers of older hosts lack. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define ONE_DEVICE 0x01 /* NO_XDEV */
#define BENEATH_ONLY (0x02 /* NO_MAGICLINKS */ | 0x04 /* NO_SYMLINKS */ | 0x08 /* BENEATH */)

struct how {
	uint64_t flags, mode, resolve;
};

int beneath_next(const char **restp, char name[NAME_MAX + 1])
{
	size_t size = strcspn(*restp, "/");

	if (size > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, *restp, size);
	name[size] = '\0';
	*restp += size + ((*restp)[size] == '/');
	return 0;
}

/* *@fdp becomes @name in it. */
static int step(int *fdp, const char *name, struct stat *status)
{
	int next = openat(*fdp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (next < 0)
		return -errno;
	fd_close(*fdp);
	*fdp = next;
	return fstat(next, status) < 0 ? -errno : 0;
}

static int find_by_step(int *fdp, int root, const char *path, bool one_device)
{
	_cleanup_(fd_closep) int fd = fcntl(root, F_DUPFD_CLOEXEC, 3);
	char name[NAME_MAX + 1];
	struct stat status;
	dev_t device;
	int r = 0;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	device = status.st_dev;
	while (!r && *path) {
		if (S_ISLNK(status.st_mode))
			return -ELOOP;
		if (!S_ISDIR(status.st_mode))
			return -ENOTDIR;
		r = beneath_next(&path, name);
		if (!r)
			r = step(&fd, name, &status);
		if (!r && one_device && status.st_dev != device)
			r = -EXDEV;
	}
	if (!r)
		*fdp = steal_fd(&fd);
	return r;
}

int beneath_find(int *fdp, int root, const char *path, bool one_device)
{
	struct how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
			  .resolve = BENEATH_ONLY | (one_device ? ONE_DEVICE : 0)};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (fd >= 0) {
		*fdp = (int)fd;
		return 0;
	}
	/* Filters older than the call say EPERM; EAGAIN: something was renamed meanwhile. */
	if (errno == ENOSYS || errno == EPERM || errno == EAGAIN)
		return find_by_step(fdp, root, path, one_device);
	return -errno;
}
