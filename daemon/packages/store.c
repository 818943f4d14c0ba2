/* Layout: sets/NAME/site and sets/NAME/lock, where NAME is the digest of the lock; asked/KEY, a file with such a
 * name; work/..., of builders; cache, uv's. All but sets is closed to sessions. */
#include "store.h"

#include "base/directory.h"
#include "vault/errand.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* Whoever knows the name of a set may read it, but not which there are. As root sessions are other users. */
#define OPEN_TO_ALL 0711

static const struct {
	const char *name;
	mode_t mode;
} directories[] = {{"sets", OPEN_TO_ALL}, {"work", OPEN_TO_ALL}, {"cache", 0700}, {"asked", 0700}};

static bool is_name(struct bytes name)
{
	for (size_t i = 0; i < name.size; i++)
		if (!((name.data[i] >= '0' && name.data[i] <= '9') || (name.data[i] >= 'a' && name.data[i] <= 'f')))
			return false;
	return name.size == SHA256_HEX_SIZE - 1;
}

static int make(const struct package_store *store)
{
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		if (mkdirat(store->fd, directories[i].name, 0700) < 0 && errno != EEXIST)
			return -errno;
		/* That of the cache may belong to the builders' user by now. */
		if (directories[i].mode != 0700 &&
		    fchmodat(store->fd, directories[i].name, directories[i].mode, 0) < 0)
			return -errno;
	}
	return fchmod(store->fd, OPEN_TO_ALL) < 0 ? -errno : 0;
}

/* Nobody is at work there any more. */
static void sweep(const struct package_store *store)
{
	_cleanup_(fd_closep) int work = openat(store->fd, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[PATH_MAX + NAME_MAX + 8];
	struct dirent *entry;
	DIR *dir = work < 0 ? NULL : directory_read(work);

	while (dir && (entry = directory_next(dir))) {
		snprintf(path, sizeof(path), "%s/work/%s", store->path, entry->d_name);
		errand_remove_tree(path);
	}
	if (dir)
		(void)closedir(dir);
}

int package_store_sets(char path[static PATH_MAX], const char *configured, const char *socket)
{
	int r = directory_of_state(path, "packages", configured, socket);

	if (!r)
		(void)strcat(path, "/sets"); /* it leaves room for more */
	return r;
}

int package_store_open(struct package_store *store, const char *configured, const char *socket)
{
	int r = directory_of_state(store->path, "packages", configured, socket);

	store->fd = -1;
	if (!r)
		r = directory_make(store->path);
	if (!r) {
		store->fd = open(store->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = store->fd < 0 ? -errno : make(store);
	}
	if (r)
		package_store_close(store);
	else
		sweep(store);
	return r;
}

void package_store_close(struct package_store *store)
{
	fd_closep(&store->fd);
	store->path[0] = '\0';
}

bool package_store_has(const struct package_store *store, struct bytes set)
{
	char path[SHA256_HEX_SIZE + 16];

	if (!is_name(set) || store->fd < 0)
		return false;
	snprintf(path, sizeof(path), "sets/%.*s/lock", (int)set.size, set.data);
	return faccessat(store->fd, path, F_OK, 0) == 0;
}

bool package_store_find(char set[static SHA256_HEX_SIZE], const struct package_store *store, const char *key)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[SHA256_HEX_SIZE + 16];
	ssize_t n;

	snprintf(path, sizeof(path), "asked/%s", key);
	fd = openat(store->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, set, SHA256_HEX_SIZE - 1);
	set[MAX(n, 0)] = '\0';
	return package_store_has(store, bytes_of(set));
}

int package_store_note(const struct package_store *store, const char *key, const char *set)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[SHA256_HEX_SIZE + 16], fresh[SHA256_HEX_SIZE + 16];

	snprintf(path, sizeof(path), "asked/%s", key);
	snprintf(fresh, sizeof(fresh), "asked/.%s", key);
	fd = openat(store->fd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, set, strlen(set)) != (ssize_t)strlen(set))
		return -ENOSPC;
	return renameat(store->fd, fresh, store->fd, path) < 0 ? -errno : 0;
}

int package_store_work(char path[static PATH_MAX], const struct package_store *store)
{
	int n = snprintf(path, PATH_MAX, "%s/work/XXXXXX", store->path);

	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	return mkdtemp(path) ? 0 : -errno;
}
