/* Pins. A name is resolved to its real path, which is then opened without following links. So the pin is the
 * directory at that path, even if a link changes meanwhile. */
#include "proto/pin.h"

#include "proto/beneath.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

/* @path is absolute. */
static int find(int *fdp, struct stat *status, const char *path)
{
	_cleanup_(fd_closep) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	int r = root < 0 ? -errno : beneath_find(&fd, root, path[1] ? path + 1 : ".", false);

	if (r == -ELOOP || r == -ENOTDIR)
		return PIN_E_CHANGED;
	if (!r && fstat(fd, status) < 0)
		r = -errno;
	if (!r && S_ISLNK(status->st_mode))
		r = PIN_E_CHANGED;
	if (!r)
		*fdp = steal_fd(&fd);
	return r;
}

int pin_take(struct pin *pin, const char *path, bool directory)
{
	char real[PATH_MAX];
	struct stat status;
	int r;

	*pin = PIN_NONE;
	if (!realpath(path, real))
		return -errno;
	r = find(&pin->fd, &status, real);
	if (!r && directory && !S_ISDIR(status.st_mode))
		r = -ENOTDIR;
	if (!r) {
		pin->path = strdup(real);
		pin->device = status.st_dev;
		pin->inode = status.st_ino;
		r = pin->path ? 0 : -ENOMEM;
	}
	if (r)
		pin_drop(pin);
	return r;
}

void pin_drop(struct pin *pin)
{
	free(pin->path);
	fd_close(pin->fd);
	*pin = PIN_NONE;
}

int pin_open(int *fdp, const char *path, uint64_t device, uint64_t inode)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;
	int r = find(&fd, &status, path);

	if (!r && (status.st_dev != device || status.st_ino != inode))
		r = PIN_E_CHANGED;
	if (!r)
		*fdp = steal_fd(&fd);
	return r;
}
