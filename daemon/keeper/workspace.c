/* Workspaces: made beneath one root, removed by descriptor. */
#include "workspace.h"

#include "base/directory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

/* The suffix of workspaces that outlive their session. */
#define KEPT ".kept"
/* Directories deeper than this are moved up before they are emptied, so a tree needs a bounded number of
 * descriptors. */
#define DEPTH_MAX 32

static int report_stale(const struct workspaces *workspaces, void (*stale)(void *userdata, const char *path),
			void *userdata)
{
	DIR *dir = directory_read(workspaces->fd);
	struct dirent *entry;
	char path[PATH_MAX];

	if (!dir)
		return -errno;
	while ((entry = directory_next(dir))) {
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", workspaces->path, entry->d_name) < sizeof(path))
			stale(userdata, path);
	}
	closedir(dir);
	return 0;
}

int workspaces_open(struct workspaces *workspaces, const char *configured, const char *socket,
		    void (*stale)(void *userdata, const char *path), void *userdata)
{
	char path[PATH_MAX];
	struct stat status;
	int r;

	*workspaces = (struct workspaces){.fd = -1};
	r = directory_of_state(path, "workspaces", configured, socket);
	if (r)
		return r;
	workspaces->path = strdup(path);
	r = workspaces->path ? directory_make_parents(path) : -ENOMEM;
	if (r)
		return r;
	/* As root, sessions of other uids must be able to pass through, but not to list it. */
	if (mkdir(path, geteuid() == 0 ? 0711 : 0700) < 0 && errno != EEXIST)
		return -errno;
	workspaces->fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (workspaces->fd < 0 || fstat(workspaces->fd, &status) < 0)
		return -errno;
	if (status.st_uid != geteuid() || (status.st_mode & 022))
		return -EPERM;
	return report_stale(workspaces, stale, userdata);
}

void workspaces_close(struct workspaces *workspaces)
{
	/* Only an empty root goes. */
	if (workspaces->path)
		(void)rmdir(workspaces->path);
	fd_closep(&workspaces->fd);
	free(workspaces->path);
	workspaces->path = NULL;
}

int workspace_create(char **pathp, const struct workspaces *workspaces, uint64_t serial, uid_t uid, bool keep)
{
	_cleanup_(freep) char *path = NULL;
	char name[64];
	uint64_t salt;

	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	snprintf(name, sizeof(name), "%" PRIu64 "-%08" PRIx32 "%s", serial, (uint32_t)salt, keep ? KEPT : "");
	if (asprintf(&path, "%s/%s", workspaces->path, name) < 0)
		return -ENOMEM;
	if (mkdirat(workspaces->fd, name, 0700) < 0)
		return -errno;
	if (uid != 0 && fchownat(workspaces->fd, name, uid, uid, AT_SYMLINK_NOFOLLOW) < 0) {
		int r = -errno;

		(void)unlinkat(workspaces->fd, name, AT_REMOVEDIR);
		return r;
	}
	*pathp = steal_ptr(&path);
	return 0;
}

bool workspace_is_kept(const char *path)
{
	size_t size = strlen(path);

	return size > strlen(KEPT) && strcmp(path + size - strlen(KEPT), KEPT) == 0;
}

int workspace_handle(int *fdp, const char *path)
{
	*fdp = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *fdp < 0 ? -errno : 0;
}

/* Give the owner permission, unless a link has taken the directory's place. */
static int open_up(int parent, const char *name)
{
	_cleanup_(fd_closep) int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char path[32];

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, 0700);
}

/* Open a directory to empty it, though its owner may have taken the permission away. */
static int open_to_empty(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 || errno != EACCES)
		return fd;
	if (open_up(parent, name) < 0)
		return -1;
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int remove_content(int fd, int top, unsigned depth);

/* Under a random name, so that nothing lies there already. A directory can get another parent only if its owner
 * may write to it. */
static int move_up(int parent, const char *name, int top)
{
	char aside[64];
	uint64_t salt;

	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	snprintf(aside, sizeof(aside), ".lair-deep-%016" PRIx64, salt);
	if (renameat(parent, name, top, aside) == 0)
		return 0;
	if (errno != EACCES || open_up(parent, name) < 0)
		return -errno;
	return renameat(parent, name, top, aside) < 0 ? -errno : 0;
}

/* A directory too deep to descend into is moved to the top, where it is found again. */
static int remove_directory(int parent, const char *name, int top, unsigned depth)
{
	int fd, r;

	if (depth >= DEPTH_MAX)
		return move_up(parent, name, top);
	fd = open_to_empty(parent, name);
	if (fd < 0)
		return -errno;
	r = remove_content(fd, top, depth + 1);
	if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && !r)
		r = -errno;
	return r;
}

/* Takes @fd. Begins again as long as something was there, since directories may have been moved up meanwhile. */
static int remove_content(int fd, int top, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	bool found, failed = false;
	int r = 0;

	if (!dir) {
		fd_close(fd);
		return -ENOMEM;
	}
	(void)fchmod(fd, 0700);
	do {
		found = false;
		rewinddir(dir);
		while ((entry = directory_next(dir))) {
			int one = 0;

			found = true;
			if (unlinkat(fd, entry->d_name, 0) < 0) {
				one = errno == EISDIR || errno == EPERM
					      ? remove_directory(fd, entry->d_name, top < 0 ? fd : top, depth)
					      : -errno;
			}
			if (one && !r)
				r = one;
			failed |= one != 0;
		}
	} while (found && !failed);
	closedir(dir);
	return r;
}

int workspace_remove_tree(int directory, const char *name)
{
	int fd = open_to_empty(directory, name), r;

	if (fd < 0)
		return -errno;
	r = remove_content(fd, -1, 0);
	if (unlinkat(directory, name, AT_REMOVEDIR) < 0 && !r)
		r = -errno;
	return r;
}
