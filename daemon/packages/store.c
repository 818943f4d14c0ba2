/* Layout: sets/NAME/site and sets/NAME/lock, where NAME is the digest of the lock; asked/KEY, a file with such a
 * name; work/..., of builders; cache, uv's. All but sets is closed to sessions. */
#include "store.h"

#include "base/directory.h"
#include "vault/errand.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

/* Whoever knows the name of a set may read it, but not which there are. As root sessions are other users. */
#define OPEN_TO_ALL 0711
#define LOCK_MOST ((size_t)256 << 10)
#define PROJECTS_MAX 64

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

/* ---- what there is, and what of it is not used ---- */

/* Whether nobody else has it open: sessions map the lock of each set that they have. While we hold the lease,
 * whoever opens it waits. Where there are no leases, anybody may have it. */
static bool lease_take(int fd)
{
	/* Whoever opens it meanwhile waits for us, and we would be told by SIGIO, which ends a process. */
	return fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
}

static int lock_open(const struct package_store *store, const char *set)
{
	char path[SHA256_HEX_SIZE + 16];

	snprintf(path, sizeof(path), "sets/%s/lock", set);
	return openat(store->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

static uint64_t number_in(const struct package_store *store, const char *path)
{
	_cleanup_(fd_closep) int fd = openat(store->fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[32];
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[MAX(n, 0)] = '\0';
	return strtoull(text, NULL, 10);
}

static uint64_t size_of(const struct package_store *store, const char *set)
{
	char path[SHA256_HEX_SIZE + 16];

	snprintf(path, sizeof(path), "sets/%s/size", set);
	return number_in(store, path);
}

uint64_t package_store_size(const struct package_store *store, uint64_t *cachep)
{
	_cleanup_(fd_closep) int sets = openat(store->fd, "sets", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = sets < 0 ? NULL : directory_read(sets);
	struct dirent *entry;
	uint64_t size = 0;

	while (dir && (entry = directory_next(dir)))
		if (is_name(bytes_of(entry->d_name)))
			size += size_of(store, entry->d_name);
	if (dir)
		(void)closedir(dir);
	*cachep = number_in(store, "cache-size");
	return size;
}

void package_store_drop_cache(const struct package_store *store)
{
	char path[PATH_MAX + 16];

	(void)unlinkat(store->fd, "cache-size", 0);
	snprintf(path, sizeof(path), "%s/work/cache", store->path);
	if (renameat(store->fd, "cache", store->fd, "work/cache") == 0)
		errand_remove_tree(path);
	(void)make(store);
}

/* The beginnings NAME==VERSION of the lines of a lock; of a long one only those that are near its beginning. */
static int projects_put(struct wire_list *projects, int fd)
{
	static char text[LOCK_MOST + 1];
	ssize_t size = pread(fd, text, LOCK_MOST, 0);

	text[MAX(size, 0)] = '\0';
	for (char *line = text; line && projects->n < PROJECTS_MAX; line = strchr(line, '\n')) {
		size_t head;

		line += *line == '\n';
		head = strcspn(line, " \n\\;");
		if (*line >= '0' && memmem(line, head, "==", 2))
			(void)wire_list_add_string(projects, (struct bytes){line, head});
	}
	return projects->r;
}

static bool tell_one(const struct package_store *store, const char *set,
		     bool (*fn)(void *userdata, const struct package_record *record), void *userdata)
{
	_cleanup_(fd_closep) int fd = lock_open(store, set);
	struct package_record record = {.set = set};
	struct stat meta;
	bool go_on = true;
	_cleanup_(wire_list_deinit) struct wire_list projects = {0};
	int r;

	if (fd < 0 || fstat(fd, &meta) < 0)
		return true;
	record.made = (double)meta.st_mtim.tv_sec;
	record.size = size_of(store, set);
	record.used = !lease_take(fd);
	r = projects_put(&projects, fd);
	record.projects = wire_list_bytes(&projects);
	fd_closep(&fd); /* we do not use it either */
	if (!r)
		go_on = fn(userdata, &record);
	return go_on;
}

void package_store_each(const struct package_store *store,
			bool (*fn)(void *userdata, const struct package_record *record), void *userdata)
{
	_cleanup_(fd_closep) int sets = openat(store->fd, "sets", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = sets < 0 ? NULL : directory_read(sets);
	struct dirent *entry;

	while (dir && (entry = directory_next(dir)))
		if (is_name(bytes_of(entry->d_name)) && !tell_one(store, entry->d_name, fn, userdata))
			break;
	if (dir)
		(void)closedir(dir);
}

int package_store_remove(const struct package_store *store, const char *set)
{
	_cleanup_(fd_closep) int fd = lock_open(store, set);
	char from[SHA256_HEX_SIZE + 16], to[SHA256_HEX_SIZE + 16], path[PATH_MAX + SHA256_HEX_SIZE + 16];

	if (fd < 0)
		return -errno;
	if (!lease_take(fd))
		return -EBUSY;
	snprintf(from, sizeof(from), "sets/%s", set);
	snprintf(to, sizeof(to), "work/%s", set);
	/* A directory that is moved is written to. */
	if (fchmodat(store->fd, from, 0755, 0) < 0 || renameat(store->fd, from, store->fd, to) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/%s", store->path, to);
	errand_remove_tree(path);
	return 0;
}

void package_store_forget(const struct package_store *store)
{
	_cleanup_(fd_closep) int asked = openat(store->fd, "asked", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = asked < 0 ? NULL : directory_read(asked);
	char set[SHA256_HEX_SIZE];
	struct dirent *entry;

	while (dir && (entry = directory_next(dir)))
		if (!is_name(bytes_of(entry->d_name)) || !package_store_find(set, store, entry->d_name))
			(void)unlinkat(asked, entry->d_name, 0);
	if (dir)
		(void)closedir(dir);
}
