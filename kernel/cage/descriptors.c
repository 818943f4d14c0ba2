/* Descriptors: a session inherits what its warden was told to keep, and nothing by accident. A library that the
 * template imported may hold one and close it later, by a number that by then is somebody else's: so numbers stay
 * taken. What the session could open itself stays (a font that matplotlib reads); everything else becomes
 * /dev/null. */
#include "steps.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static bool is_kept(int fd, const int *keep)
{
	for (; keep && *keep >= 0; keep++)
		if (*keep == fd)
			return true;
	return false;
}

/* A file, open only to be read, in a place that is readable. */
static bool is_harmless(const struct cage *cage, int directory, const char *name, int fd)
{
	const struct place *place;
	char path[PATH_MAX];
	struct stat meta;
	int flags = fcntl(fd, F_GETFL);
	ssize_t size;

	if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY || flags & O_PATH || fstat(fd, &meta) < 0 ||
	    !S_ISREG(meta.st_mode))
		return false;
	size = readlinkat(directory, name, path, sizeof(path));
	if (size <= 0 || size == sizeof(path))
		return false;
	place = places_find(&cage->places, path, (size_t)size);
	return place && place->kind == PLACE_READ;
}

int descriptors_close(struct cage *cage, const int *keep, struct cage_report *report)
{
	_cleanup_(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	int r = 0, fd;

	if (null < 0 || !directory || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		r = -errno;
	while (!r && directory && (entry = readdir(directory))) {
		fd = atoi(entry->d_name);
		if (fd <= STDERR_FILENO || fd == null || fd == dirfd(directory) || is_kept(fd, keep) ||
		    is_harmless(cage, dirfd(directory), entry->d_name, fd))
			continue;
		if (dup3(null, fd, O_CLOEXEC) < 0)
			r = -errno;
	}
	if (directory)
		closedir(directory);
	return r ? cage_fail(report, -r, "the descriptors") : 0;
}
