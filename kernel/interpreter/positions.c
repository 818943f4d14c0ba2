/* The list is small, and made by one look at the descriptors, because it is made with each checkpoint. */
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

static void note(int fd)
{
	struct position *position = &positions[n_positions];
	struct stat status;

	if (n_positions == POSITIONS_MAX || fstat(fd, &status) < 0 || !is_ours(&status))
		return;
	position->fd = fd;
	position->inode = status.st_ino;
	position->offset = lseek(fd, 0, SEEK_CUR);
	n_positions += position->offset >= 0;
}

void positions_note(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	n_positions = 0;
	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) > STDERR_FILENO)
			note(atoi(entry->d_name));
	if (directory)
		closedir(directory);
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
