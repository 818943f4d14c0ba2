/* Nothing follows a link, and nothing is believed of what is there but what the kernel says. */
#include "seal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define DEPTH_MAX 64

struct seal {
	uint64_t limit, size;
	char *culprit;
};

static int fail(const struct seal *seal, int error, const char *name)
{
	if (!seal->culprit[0])
		(void)snprintf(seal->culprit, 256, "%s", name);
	return -error;
}

static int seal_one(const struct seal *seal, int fd, const struct stat *meta, const char *name)
{
	mode_t mode = S_ISDIR(meta->st_mode) || (meta->st_mode & 0100) ? 0555 : 0444;

	if (geteuid() == 0 && fchown(fd, 0, 0) < 0)
		return fail(seal, errno, name);
	return fchmod(fd, mode) < 0 ? fail(seal, errno, name) : 0;
}

static int count(struct seal *seal, const struct stat *meta, const char *name)
{
	seal->size += ((uint64_t)meta->st_size / SEAL_UNIT + 1) * SEAL_UNIT;
	if (!S_ISDIR(meta->st_mode) && !S_ISREG(meta->st_mode))
		return fail(seal, ELOOP, name);
	if (S_ISREG(meta->st_mode) && meta->st_nlink != 1)
		return fail(seal, EMLINK, name);
	if (seal->size > seal->limit)
		return fail(seal, EFBIG, name);
	return 0;
}

static int walk(struct seal *seal, int directory, const char *name, unsigned depth);

static int walk_in(struct seal *seal, int fd, unsigned depth)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3), r = 0;
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir) {
		fd_close(copy);
		return -errno;
	}
	while (!r && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = walk(seal, fd, entry->d_name, depth + 1);
	(void)closedir(dir);
	return r;
}

/* What is no file and no directory is not opened. */
static int walk(struct seal *seal, int directory, const char *name, unsigned depth)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat meta;
	int r;

	if (depth > DEPTH_MAX)
		return fail(seal, ENAMETOOLONG, name);
	if (fstatat(directory, name, &meta, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(seal, errno, name);
	if (!S_ISDIR(meta.st_mode) && !S_ISREG(meta.st_mode))
		return fail(seal, ELOOP, name);
	fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &meta) < 0)
		return fail(seal, errno, name);
	r = count(seal, &meta, name);
	if (!r && S_ISDIR(meta.st_mode))
		r = walk_in(seal, fd, depth);
	return r ? r : seal_one(seal, fd, &meta, name);
}

int seal_tree(int directory, const char *name, uint64_t limit, uint64_t *sizep, char culprit[static 256])
{
	struct seal seal = {.limit = limit, .culprit = culprit};
	int r;

	culprit[0] = '\0';
	r = walk(&seal, directory, name, 0);
	*sizep = seal.size;
	return r;
}
