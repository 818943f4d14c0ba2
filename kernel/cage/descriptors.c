/* Descriptors: a session inherits only those that its warden was told to keep. A library that the template
 * imported may hold a descriptor and close it later, by a number that somebody else would have by then; so
 * numbers stay taken. A file that the session could open itself stays open (a font that matplotlib reads);
 * everything else becomes /dev/null. */
#include "steps.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static bool is_kept(int fd, const int *keep)
{
	for (; keep && *keep >= 0; keep++)
		if (*keep == fd)
			return true;
	return false;
}

/* Whether @fd is a regular file that is open only for reading. */
static bool is_plain(int fd)
{
	struct stat meta;
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH) && fstat(fd, &meta) == 0 &&
	       S_ISREG(meta.st_mode);
}

/* Whether @fd is a plain file in a place that sessions may read. */
static bool is_harmless(const struct cage *cage, int directory, const char *name, int fd)
{
	const struct place *place;
	char path[PATH_MAX];
	ssize_t size;

	if (!is_plain(fd))
		return false;
	size = readlinkat(directory, name, path, sizeof(path));
	if (size <= 0 || size == sizeof(path))
		return false;
	place = places_find(&cage->places, path, (size_t)size);
	return place && place->kind == PLACE_READ;
}

/* By now the template has opened nearly all its descriptors. So a warden need not list its own: it tries each
 * number up to descriptors_end. */
int descriptors_prepare(struct cage *cage)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		int fd = atoi(entry->d_name);

		cage->descriptors_end = MAX(cage->descriptors_end, fd + 1);
		if (fd > STDERR_FILENO && fd < DESCRIPTORS_MARKED && fd != dirfd(directory) &&
		    is_harmless(cage, dirfd(directory), entry->d_name, fd))
			cage->descriptors_harmless[fd / 64] |= 1ULL << (fd % 64);
	}
	closedir(directory);
	return 0;
}

/* The number may belong to another file by now. It is still harmless, since the template opens plain files only for
 * Python. */
static bool is_still_harmless(const struct cage *cage, int fd)
{
	return fd < DESCRIPTORS_MARKED && (cage->descriptors_harmless[fd / 64] >> (fd % 64) & 1) && is_plain(fd);
}

/* Normally no descriptor is open from @first on. */
static int close_above(int first)
{
	struct dirent *entry;
	DIR *directory;

	if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0)
		return 0;
	directory = opendir("/proc/self/fd");
	if (!directory)
		return -errno;
	while ((entry = readdir(directory)))
		if (atoi(entry->d_name) >= first && atoi(entry->d_name) != dirfd(directory))
			(void)close(atoi(entry->d_name));
	closedir(directory);
	return 0;
}

int descriptors_close(struct cage *cage, const int *keep, struct cage_report *report)
{
	_cleanup_(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int end = MAX(cage->descriptors_end, null + 1), r = 0;

	for (const int *kept = keep; kept && *kept >= 0; kept++)
		end = MAX(end, *kept + 1);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		r = -errno;
	for (int fd = STDERR_FILENO + 1; !r && fd < end; fd++)
		if (fd != null && !is_kept(fd, keep) && !is_still_harmless(cage, fd) && fcntl(fd, F_GETFD) >= 0 &&
		    dup3(null, fd, O_CLOEXEC) < 0)
			r = -errno;
	if (!r)
		r = close_above(end);
	return r ? cage_fail(report, -r, "the descriptors") : 0;
}

/* Closed descriptors are now the host's /dev/null, which a session could reach past its mounts. They get the
 * /dev/null of the session's own tree instead. */
int descriptors_renew(const struct cage *cage)
{
	_cleanup_(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stat ours = {0}, theirs;
	int r = null < 0 || fstat(null, &ours) < 0 ? -errno : 0;

	for (int fd = 0; !r && fd < cage->descriptors_end; fd++)
		if (fd != null && fstat(fd, &theirs) == 0 && S_ISCHR(theirs.st_mode) &&
		    theirs.st_rdev == ours.st_rdev && dup3(null, fd, fd > STDERR_FILENO ? O_CLOEXEC : 0) < 0)
			r = -errno;
	return r;
}
