/* Reaching. The descriptor of the last directory is kept, and the next one is reached from there: up to the
 * directory that both have in common, then down, a component at a time. So a walk takes as many steps as there are
 * directories, and no path is looked up from the root again. Invariant: a directory that was left upwards is the
 * one that was passed on the way down; if somebody has moved it meanwhile, the way begins at the root. A directory
 * that lacks rights is opened up on the way in, while its parent is at hand. */
#include "reach.h"

#include <fcntl.h>

#define FILE_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define STEP_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

void reach_init(struct reach *reach, int root, mode_t rights)
{
	struct stat status;

	*reach = (struct reach){.root = root, .rights = rights, .fd = -1};
	if (fstat(root, &status) == 0) {
		reach->device = status.st_dev;
		reach->inodes[0] = status.st_ino;
	}
}

void reach_leave(struct reach *reach)
{
	fd_closep(&reach->fd);
	reach->depth = 0;
	reach->path[0] = '\0';
	reach->whole = false;
}

static int here(const struct reach *reach)
{
	return reach->fd < 0 ? reach->root : reach->fd;
}

/* ---- steps ---- */

/* It may be somebody else's, or modes may be fixed: then it stays, and what is done in it fails. @name: in the
 * directory where the reach is; "": the root. */
static int open_up(struct reach *reach, const char *path, size_t size, const char *name, mode_t mode, mode_t needed)
{
	struct reach_opened *opened;
	int r;

	if ((mode & needed) == needed)
		return 0;
	opened = malloc(sizeof(*opened) + size + 1);
	if (!opened)
		return -ENOMEM;
	opened->mode = mode & 07777;
	opened->mode_open = opened->mode | reach->rights;
	memcpy(opened->path, path, size);
	opened->path[size] = '\0';
	r = name[0] ? fchmodat(here(reach), name, opened->mode_open, 0) : fchmod(reach->root, opened->mode_open);
	if (r < 0) {
		free(opened);
		return 0;
	}
	opened->next = reach->opened;
	reach->opened = opened;
	return 0;
}

static int root_open_up(struct reach *reach, mode_t needed)
{
	struct stat status;

	return fstat(reach->root, &status) < 0 ? -errno : open_up(reach, "", 0, "", status.st_mode, needed);
}

static int up(struct reach *reach)
{
	char *slash = strrchr(reach->path, '/');
	_cleanup_(fd_closep) int fd = openat(reach->fd, "..", STEP_FLAGS);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (status.st_dev != reach->device || status.st_ino != reach->inodes[reach->depth - 1])
		return -ESTALE;
	*(slash ? slash : reach->path) = '\0';
	reach->whole = (status.st_mode & reach->rights) == reach->rights;
	fd_close(reach->fd);
	reach->fd = --reach->depth > 0 ? steal_fd(&fd) : -1;
	return 0;
}

/* To the directory of which the path is the first @size bytes of @path. */
static int down(struct reach *reach, const char *path, size_t size)
{
	size_t before = strlen(reach->path), length = size - before - (before > 0);
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;
	char name[NAME_MAX + 1];
	bool last = !path[size];
	int r;

	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, path + size - length, length);
	name[length] = '\0';
	fd = openat(here(reach), name, STEP_FLAGS);
	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (status.st_dev != reach->device)
		return -EXDEV;
	r = open_up(reach, path, size, name, status.st_mode, last ? reach->rights : reach->rights & S_IXUSR);
	if (r)
		return r;
	reach->inodes[++reach->depth] = status.st_ino;
	memcpy(reach->path, path, size);
	reach->path[size] = '\0';
	reach->whole = last;
	fd_close(reach->fd);
	reach->fd = steal_fd(&fd);
	return 0;
}

/* ---- ways ---- */

/* How many components @path has in common with that of the directory where the reach is; *@allp: how many there are
 * in all, which is more than none. */
static unsigned in_common(unsigned *allp, const struct reach *reach, const char *path)
{
	const char *at = reach->path;
	unsigned n = 0, common;

	for (; *path && *at == *path; at++, path++)
		n += *at == '/';
	common = n + (at > reach->path && (!*at || *at == '/') && (!*path || *path == '/'));
	for (*allp = n + 1; (path = strchr(path, '/')); path++)
		++*allp;
	return common;
}

/* From the root, if that is nearer, or the directories have been moved. */
static void go_up(struct reach *reach, unsigned depth)
{
	if (reach->depth - depth > depth)
		reach_leave(reach);
	while (reach->depth > depth)
		if (up(reach))
			reach_leave(reach);
}

static int go_down(struct reach *reach, const char *path)
{
	size_t size = strlen(reach->path);
	int r = reach->depth == 0 ? root_open_up(reach, reach->rights & S_IXUSR) : 0;

	while (!r && path[size]) {
		size += reach->depth > 0;
		size += strcspn(path + size, "/");
		r = down(reach, path, size);
	}
	return r;
}

int reach_directory(struct reach *reach, int *fdp, const char *path)
{
	unsigned common, all;
	int r = 0;

	*fdp = reach->root;
	if (!path[0])
		return root_open_up(reach, reach->rights);
	if (strlen(path) >= sizeof(reach->path))
		return -ENAMETOOLONG;
	common = in_common(&all, reach, path);
	go_up(reach, common);
	if (reach->depth < all || !reach->whole) {
		/* It is entered again if it was only passed: it may lack rights. */
		go_up(reach, MIN(reach->depth, all - 1));
		r = go_down(reach, path);
	}
	*fdp = here(reach);
	return r;
}

/* The path of the directory above. */
static int parent_path(char above[static PATH_MAX], const char **namep, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t size = slash ? (size_t)(slash - path) : 0;

	*namep = slash ? slash + 1 : path;
	if (size >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(above, path, size);
	above[size] = '\0';
	return 0;
}

int reach_parent(struct reach *reach, int *fdp, const char **namep, const char *path)
{
	char above[PATH_MAX];
	int r = parent_path(above, namep, path);

	return r ? r : reach_directory(reach, fdp, above);
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

static int shut_one(struct reach *reach, const struct reach_opened *opened)
{
	struct stat status;
	const char *name;
	int parent, r;

	if (!opened->path[0])
		return fstat(reach->root, &status) == 0 && (status.st_mode & 07777) == opened->mode_open &&
				       fchmod(reach->root, opened->mode) < 0
			       ? -errno
			       : 0;
	r = reach_parent(reach, &parent, &name, opened->path);
	if (r || fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return r ? r : -errno;
	return S_ISDIR(status.st_mode) && (status.st_mode & 07777) == opened->mode_open &&
			       fchmodat(parent, name, opened->mode, 0) < 0
		       ? -errno
		       : 0;
}

int reach_shut(struct reach *reach)
{
	mode_t rights = reach->rights;
	struct reach_opened *opened;
	int first = 0;

	reach->rights = 0; /* nothing more is opened up */
	while ((opened = reach->opened)) {
		int r = shut_one(reach, opened);

		reach->opened = opened->next;
		if (r && r != -ENOENT && r != -ENOTDIR && !first)
			first = r;
		free(opened);
	}
	reach->rights = rights;
	reach_leave(reach);
	return first;
}

int reach_pause(struct reach *reach)
{
	reach->whole = false;
	return reach->opened ? reach_shut(reach) : 0;
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
