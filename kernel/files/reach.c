/* Reaching. A directory is opened up when it is first asked for and lacks rights; those above it before, if they do
 * not let pass. The last one is remembered, because most are asked for several times in a row. */
#include "reach.h"

#include "proto/beneath.h"

#include <fcntl.h>
#include <stdio.h>

#define FILE_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

void reach_init(struct reach *reach, int root, mode_t rights)
{
	*reach = (struct reach){.root = root, .rights = rights, .fd = -1};
}

void reach_leave(struct reach *reach)
{
	fd_closep(&reach->fd);
}

/* The length of the path of the directory above. */
static int above_of(const char **namep, const char *path)
{
	const char *slash = strrchr(path, '/');

	*namep = slash ? slash + 1 : path;
	return slash ? (int)(slash - path) : 0;
}

static int mode_set(const struct reach *reach, const char *path, mode_t mode)
{
	_cleanup_(fd_closep) int parent = -1;
	char above[PATH_MAX];
	const char *name;
	int r;

	if (!path[0])
		return fchmod(reach->root, mode) < 0 ? -errno : 0;
	snprintf(above, sizeof(above), "%.*s", above_of(&name, path), path);
	r = beneath_find(&parent, reach->root, above[0] ? above : ".", true);
	return !r && fchmodat(parent, name, mode, 0) < 0 ? -errno : r;
}

/* It may be somebody else's, or modes may be fixed: then it stays, and what is done in it fails. */
static int open_up(struct reach *reach, const char *path, mode_t mode)
{
	size_t size = strlen(path) + 1;
	struct reach_opened *opened;

	if ((mode & reach->rights) == reach->rights)
		return 0;
	opened = malloc(sizeof(*opened) + size);
	if (!opened)
		return -ENOMEM;
	opened->mode = mode & 07777;
	opened->mode_open = opened->mode | reach->rights;
	memcpy(opened->path, path, size);
	if (mode_set(reach, path, opened->mode_open)) {
		free(opened);
		return 0;
	}
	opened->next = reach->opened;
	reach->opened = opened;
	return 0;
}

static int find(struct reach *reach, int *fdp, const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;
	int r = 0;

	if (path[0])
		r = beneath_find(&fd, reach->root, path, true);
	if (!r && fstat(path[0] ? fd : reach->root, &status) < 0)
		r = -errno;
	if (!r && !S_ISDIR(status.st_mode))
		r = -ENOTDIR;
	if (!r)
		r = open_up(reach, path, status.st_mode);
	if (!r)
		*fdp = steal_fd(&fd);
	return r;
}

/* All that lie above @path, from the root on. */
static int open_up_above(struct reach *reach, const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	char above[PATH_MAX];
	int r = find(reach, &fd, "");

	for (const char *slash = strchr(path, '/'); !r && slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		fd_closep(&fd);
		r = find(reach, &fd, above);
	}
	return r;
}

int reach_directory(struct reach *reach, int *fdp, const char *path)
{
	int r = 0;

	if (strlen(path) >= sizeof(reach->path))
		return -ENAMETOOLONG;
	if (reach->fd < 0 || strcmp(reach->path, path) != 0) {
		fd_closep(&reach->fd);
		r = find(reach, &reach->fd, path);
		if (r == -EACCES && !(r = open_up_above(reach, path)))
			r = find(reach, &reach->fd, path);
		strcpy(reach->path, path);
	}
	*fdp = reach->fd < 0 ? reach->root : reach->fd;
	return r;
}

int reach_parent(struct reach *reach, int *fdp, const char **namep, const char *path)
{
	char above[PATH_MAX];
	int size = above_of(namep, path);

	if ((size_t)size >= sizeof(above))
		return -ENAMETOOLONG;
	snprintf(above, sizeof(above), "%.*s", size, path);
	return reach_directory(reach, fdp, above);
}

/* The right to open it is given for a moment. */
static int open_anyway(int parent, const char *name, int access)
{
	struct stat status;
	int fd;

	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -ELOOP;
	if (fchmodat(parent, name, (status.st_mode & 07777) | S_IRUSR | S_IWUSR, 0) < 0)
		return -EACCES;
	fd = openat(parent, name, access | FILE_FLAGS);
	if (fd < 0)
		fd = -errno;
	if (fchmodat(parent, name, status.st_mode & 07777, 0) < 0 && fd < 0)
		return -errno;
	return fd;
}

int reach_file(struct reach *reach, const char *path, int access)
{
	struct stat status;
	const char *name;
	int parent, fd, r = reach_parent(reach, &parent, &name, path);

	if (r)
		return r;
	fd = openat(parent, name, access | FILE_FLAGS);
	if (fd < 0)
		fd = errno == EACCES ? open_anyway(parent, name, access) : -errno;
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		return fd;
	fd_close(fd);
	return -ELOOP;
}

int reach_shut(struct reach *reach)
{
	struct reach_opened *opened;
	int first = 0;

	reach_leave(reach);
	while ((opened = reach->opened)) {
		_cleanup_(fd_closep) int fd = -1;
		struct stat status;
		int r = 0;

		reach->opened = opened->next;
		if (opened->path[0])
			r = beneath_find(&fd, reach->root, opened->path, true);
		if (!r && fstat(opened->path[0] ? fd : reach->root, &status) == 0 && S_ISDIR(status.st_mode) &&
		    (status.st_mode & 07777) == opened->mode_open)
			r = mode_set(reach, opened->path, opened->mode);
		if (r && r != -ENOENT && r != -ENOTDIR && !first)
			first = r;
		free(opened);
	}
	return first;
}

int directory_open(int *fdp, int parent, const char *name)
{
	int fd = openat(parent, name, DIRECTORY_FLAGS);
	struct stat status;

	if (fd < 0 && errno == EACCES && fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(status.st_mode) && fchmodat(parent, name, (status.st_mode & 07777) | S_IRUSR, 0) == 0) {
		fd = openat(parent, name, DIRECTORY_FLAGS);
		if (fchmodat(parent, name, status.st_mode & 07777, 0) < 0)
			fd_closep(&fd);
	}
	*fdp = fd;
	return fd < 0 ? -errno : 0;
}
