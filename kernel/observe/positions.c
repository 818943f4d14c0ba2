/* The list is small, and made by one look at the descriptors, because it is made with each checkpoint. So is the
 * look for files that are open for writing. */
#include "positions.h"

#include "artifacts.h"
#include "proto/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define POSITIONS_MAX 256
#define REMOVED " (deleted)"

static struct position {
	int fd;
	ino_t inode;
	off_t offset;
} positions[POSITIONS_MAX];
static size_t n_positions;

static bool is_ours(const struct stat *status)
{
	static dev_t device;
	struct stat home;

	if (!device && stat(artifacts_root(), &home) == 0)
		device = home.st_dev;
	return S_ISREG(status->st_mode) && status->st_dev == device;
}

static void note(int fd, void *userdata)
{
	struct position *position = &positions[n_positions];
	struct stat status;

	if (fd <= STDERR_FILENO || n_positions == POSITIONS_MAX || fstat(fd, &status) < 0 || !is_ours(&status))
		return;
	position->fd = fd;
	position->inode = status.st_ino;
	position->offset = lseek(fd, 0, SEEK_CUR);
	n_positions += position->offset >= 0;
}

static bool for_each_descriptor(void (*see)(int fd, void *userdata), void *userdata)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	if (!directory)
		return false;
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			see(atoi(entry->d_name), userdata);
	closedir(directory);
	return true;
}

void positions_note(void)
{
	n_positions = 0;
	(void)for_each_descriptor(note, NULL);
}

struct held {
	struct timespec then;
	unsigned n;
	bool changed;
};

static void held_note(int fd, void *userdata)
{
	struct held *held = userdata;
	struct stat status;
	int flags;

	if (fstat(fd, &status) < 0 || !is_ours(&status) || status.st_nlink == 0)
		return;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) == O_RDONLY)
		return;
	held->n++;
	held->changed |=
		status.st_ctim.tv_sec > held->then.tv_sec ||
		(status.st_ctim.tv_sec == held->then.tv_sec && status.st_ctim.tv_nsec >= held->then.tv_nsec);
}

unsigned positions_held(struct timespec then, bool *changedp)
{
	struct held held = {.then = then};

	if (!for_each_descriptor(held_note, &held)) {
		*changedp = true;
		return UINT_MAX;
	}
	*changedp = held.changed;
	return held.n;
}

/* The path that the file had when it was removed. False if it has not been, or is elsewhere. */
static bool path_of_removed(char path[static PATH_MAX], int fd)
{
	size_t tail = strlen(REMOVED), home = strlen(artifacts_root());
	char link[32];
	ssize_t size;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	size = readlink(link, path, PATH_MAX - 1);
	if (size < (ssize_t)tail || memcmp(path + size - tail, REMOVED, tail) != 0)
		return false;
	path[(size_t)size - tail] = '\0';
	return strncmp(path, artifacts_root(), home) == 0 && path[home] == '/';
}

/* It may be there again, as another file. */
static void open_again(int fd)
{
	int flags = fcntl(fd, F_GETFL), kept = fcntl(fd, F_GETFD), again;
	char path[PATH_MAX];

	if (flags < 0 || kept < 0 || !path_of_removed(path, fd))
		return;
	again = open(path, (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK)) | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	if (again < 0)
		return;
	(void)dup3(again, fd, kept & FD_CLOEXEC ? O_CLOEXEC : 0);
	fd_close(again);
}

void positions_set(void)
{
	for (size_t i = 0; i < n_positions; i++) {
		const struct position *position = &positions[i];
		struct stat status;

		if (fstat(position->fd, &status) < 0 || status.st_ino != position->inode || !is_ours(&status))
			continue;
		if (status.st_nlink == 0)
			open_again(position->fd);
		(void)lseek(position->fd, position->offset, SEEK_SET);
	}
}
