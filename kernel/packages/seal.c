/* Nothing follows a link, and nothing is believed of what is there but what the kernel says. A directory is sealed
 * before what is in it: to seal a file takes no right to its directory. */
#include "seal.h"

#include "files/walk.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

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

static int entry_seal(struct walk *walk, const char *name, unsigned char type)
{
	_cleanup_(fd_closep) int fd = -1;
	struct seal *seal = walk->userdata;
	struct stat meta;
	int r;

	if (type != DT_DIR && type != DT_REG)
		return fail(seal, ELOOP, name); /* it is not even opened */
	fd = openat(walk->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &meta) < 0)
		return fail(seal, errno, name);
	r = count(seal, &meta, name);
	if (!r)
		r = seal_one(seal, fd, &meta, name);
	return r ? r : S_ISDIR(meta.st_mode) ? WALK_INTO : WALK_ON;
}

static int directory_lost(struct walk *walk, const char *path, int r)
{
	return fail(walk->userdata, -r, path);
}

static int seal_root(struct walk *walk)
{
	struct seal *seal = walk->userdata;
	struct stat meta;

	if (walk->path[0]) /* it was sealed as an entry of the one above */
		return 0;
	if (fstat(walk->fd, &meta) < 0)
		return -errno;
	return count(seal, &meta, ".") ? -EFBIG : seal_one(seal, walk->fd, &meta, ".");
}

int seal_tree(int directory, const char *name, uint64_t limit, uint64_t *sizep, char culprit[static 256])
{
	static const struct walk_visitor visitor = {seal_root, entry_seal, directory_lost};
	_cleanup_(fd_closep) int root = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct seal seal = {.limit = limit, .culprit = culprit};
	struct walk walk;
	int r;

	culprit[0] = '\0';
	if (root < 0)
		return fail(&seal, errno == ENOTDIR ? ELOOP : errno, name);
	r = walk_begin(&walk, root, 0, &visitor, &seal);
	if (!r)
		r = walk_step(&walk, UINT_MAX);
	walk_end(&walk);
	*sizep = seal.size;
	return r;
}
