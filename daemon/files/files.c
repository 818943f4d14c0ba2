/* The safe openers. A path is resolved to an O_PATH descriptor, which opens nothing. We look at that file first.
 * Only if it is of the right kind, it is opened through /proc/self/fd, so the opened file is the one we looked
 * at. */
#include "files.h"

#include "base/directory.h"

#include "proto/beneath.h"
#include "proto/message.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

/* A file is refused if it is so many times larger than its stored bytes, and not small. */
#define SPARSE_FACTOR 16
#define SPARSE_MIN (16ULL << 20)

const char *file_kind(mode_t mode)
{
	static const struct {
		mode_t type;
		const char *name;
	} kinds[] = {
		{S_IFREG, "a file"},	{S_IFDIR, "a directory"}, {S_IFLNK, "a symbolic link"}, {S_IFIFO, "a FIFO"},
		{S_IFSOCK, "a socket"}, {S_IFCHR, "a device"},	  {S_IFBLK, "a device"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((mode & S_IFMT) == kinds[i].type)
			return kinds[i].name;
	return "of no known kind";
}

/* ---- paths ---- */

/* @path without @root and the slash after it; unchanged if it does not begin with these. */
static struct bytes path_beneath(struct bytes path, const char *root)
{
	size_t size = root ? strlen(root) : 0;

	while (size > 0 && root[size - 1] == '/')
		size--;
	if (!root || path.size < size || memcmp(path.data, root, size) != 0)
		return path;
	if (path.size > size && path.data[size] != '/')
		return path;
	while (size < path.size && path.data[size] == '/')
		size++;
	return (struct bytes){.data = path.data + size, .size = path.size - size};
}

int file_path(char out[PATH_MAX], struct bytes path, const char *root)
{
	struct bytes rest = path_beneath(path, root);
	size_t size = 0, depth = 0;

	if ((rest.size > 0 && *rest.data == '/') || (rest.size > 0 && memchr(rest.data, '\0', rest.size)))
		return FILE_E_PATH;
	while (rest.size > 0) {
		const char *slash = memchr(rest.data, '/', rest.size);
		struct bytes name = {.data = rest.data, .size = slash ? (size_t)(slash - rest.data) : rest.size};

		rest.data += name.size + (slash != NULL);
		rest.size -= name.size + (slash != NULL);
		if (name.size == 0 || bytes_is(name, "."))
			continue;
		if (bytes_is(name, "..") || name.size > NAME_MAX || size + name.size + 2 > PATH_MAX ||
		    ++depth > FILE_DEPTH_MAX)
			return FILE_E_PATH;
		if (size > 0)
			out[size++] = '/';
		memcpy(out + size, name.data, name.size);
		size += name.size;
	}
	if (size == 0)
		out[size++] = '.';
	out[size] = '\0';
	return 0;
}

int file_directory(int *fdp, int root, const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;
	int r = beneath_find(&fd, root, path, true);

	if (r)
		return r;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (S_ISLNK(status.st_mode))
		return -ELOOP;
	if (!S_ISDIR(status.st_mode))
		return FILE_E_KIND;
	*fdp = steal_fd(&fd);
	return 0;
}

/* ---- reading ---- */

static int readable(const struct stat *status, uint64_t size_max)
{
	uint64_t size = (uint64_t)status->st_size, stored = (uint64_t)status->st_blocks * 512;

	if (!S_ISREG(status->st_mode))
		return FILE_E_KIND;
	if (status->st_nlink != 1)
		return FILE_E_LINKED;
	if (size_max && size > size_max)
		return FILE_E_SIZE;
	return size > SPARSE_MIN && stored < size / SPARSE_FACTOR ? FILE_E_SPARSE : 0;
}

int file_open(int *fdp, struct stat *status, int root, const char *path, uint64_t size_max)
{
	_cleanup_(fd_closep) int handle = -1, fd = -1;
	char proc[32];
	int r = beneath_find(&handle, root, path, true);

	if (r)
		return r;
	if (fstat(handle, status) < 0)
		return -errno;
	r = readable(status, size_max);
	if (r)
		return r;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", handle);
	fd = open(proc, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, status) < 0)
		return -errno;
	r = readable(status, size_max);
	if (!r)
		*fdp = steal_fd(&fd);
	return r;
}

ssize_t file_read(int fd, char *data, size_t size, uint64_t offset)
{
	size_t done = 0;

	if (offset > INT64_MAX - size)
		return 0;
	while (done < size) {
		ssize_t n = pread(fd, data + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* ---- listing ---- */

static const char *record_kind(mode_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "directory";
	return S_ISLNK(mode) ? "link" : "other";
}

/* If it is gone meanwhile, nothing is appended. */
static int record_put(struct wire_list *records, int directory, const char *name)
{
	struct file_record record = {.name = bytes_of(name)};
	struct stat status;

	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	record.kind = bytes_of(record_kind(status.st_mode));
	record.size = (uint64_t)status.st_size;
	record.stored = (uint64_t)status.st_blocks * 512;
	record.mode = status.st_mode & 0777;
	record.modified = (double)status.st_mtim.tv_sec + (double)status.st_mtim.tv_nsec / 1e9;
	return wire_list_add(records, &file_record_schema, &record);
}

static int records_read(struct wire_list *records, uint64_t *nextp, DIR *dir)
{
	struct dirent *entry;
	int r = 0;

	while (!r && records->n < FILE_LIST_MAX) {
		entry = directory_next(dir);
		if (!entry)
			return -errno;
		r = record_put(records, dirfd(dir), entry->d_name);
	}
	*nextp = (uint64_t)telldir(dir);
	return r;
}

int file_list(struct wire_list *records, uint64_t *nextp, int root, const char *path, uint64_t after)
{
	_cleanup_(fd_closep) int handle = -1;
	DIR *dir;
	int r;

	*nextp = 0;
	r = file_directory(&handle, root, path);
	if (r)
		return r;
	dir = directory_read(handle);
	if (!dir)
		return -errno;
	if (after)
		seekdir(dir, (long)after);
	r = records_read(records, nextp, dir);
	closedir(dir);
	return r;
}

/* ---- writing ---- */

/* Give what we made as root to @uid. If it was swapped since, the new one belongs to @uid already. */
static int give(int fd, uid_t uid)
{
	struct stat status;

	if (uid == 0 || uid == geteuid())
		return 0;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (status.st_uid != geteuid() || fchownat(fd, "", uid, uid, AT_EMPTY_PATH) == 0)
		return 0;
	return -errno;
}

/* *@fdp becomes the directory @name in it, which is made if it is missing. */
static int enter(int *fdp, const char *name, uid_t uid)
{
	bool made = mkdirat(*fdp, name, 0755) == 0;
	struct stat status;
	int next, r;

	if (!made && errno != EEXIST)
		return -errno;
	r = beneath_find(&next, *fdp, name, true);
	if (r)
		return r;
	fd_close(*fdp);
	*fdp = next;
	if (fstat(next, &status) < 0)
		return -errno;
	if (!S_ISDIR(status.st_mode))
		return S_ISLNK(status.st_mode) ? -ELOOP : -ENOTDIR;
	return made ? give(next, uid) : 0;
}

static int enter_path(int *fdp, int root, const char *path, uid_t uid)
{
	_cleanup_(fd_closep) int fd = fcntl(root, F_DUPFD_CLOEXEC, 3);
	char name[NAME_MAX + 1];
	int r = fd < 0 ? -errno : 0;

	while (!r && *path && strcmp(path, ".")) {
		r = beneath_next(&path, name);
		if (!r)
			r = enter(&fd, name, uid);
	}
	if (!r)
		*fdp = steal_fd(&fd);
	return r;
}

int file_make_directory(int root, const char *path, uid_t uid)
{
	_cleanup_(fd_closep) int fd = -1;

	return enter_path(&fd, root, path, uid);
}

/* @path without its last component; that goes to @name. */
static void path_split(char above[PATH_MAX], char name[NAME_MAX + 1], const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(above, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	snprintf(name, NAME_MAX + 1, "%s", slash ? slash + 1 : path);
}

static bool is_directory(int directory, const char *name)
{
	struct stat status;

	return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

int new_file_begin(struct new_file *file, int root, const char *path, uid_t uid)
{
	uint64_t salt;
	int r;

	*file = NEW_FILE_NONE;
	if (!strcmp(path, "."))
		return FILE_E_KIND;
	path_split(file->above, file->name, path);
	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	snprintf(file->temporary, sizeof(file->temporary), ".lair-put-%016" PRIx64, salt);
	r = enter_path(&file->directory, root, file->above, uid);
	if (r)
		return r;
	if (is_directory(file->directory, file->name)) {
		new_file_deinit(file);
		return FILE_E_KIND;
	}
	file->fd = openat(file->directory, file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			  0600);
	r = file->fd < 0 ? -errno : give(file->fd, uid);
	if (r)
		new_file_deinit(file);
	return r;
}

int new_file_append(struct new_file *file, struct bytes data)
{
	while (data.size > 0) {
		ssize_t n = pwrite(file->fd, data.data, data.size, (off_t)file->size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		file->size += (size_t)n;
		data = (struct bytes){.data = data.data + n, .size = data.size - (size_t)n};
	}
	return 0;
}

/* Whether the temporary name still means our file. The session may replace it between this and the next call.
 * Then the session gets its own file, which it could have written anyway. */
static bool still_ours(const struct new_file *file)
{
	struct stat ours, there;

	return fstat(file->fd, &ours) == 0 &&
	       fstatat(file->directory, file->temporary, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

int new_file_commit(struct new_file *file, mode_t mode)
{
	if (fchmod(file->fd, mode & 0777) < 0)
		return -errno;
	if (!still_ours(file))
		return FILE_E_TAKEN;
	if (renameat(file->directory, file->temporary, file->directory, file->name) < 0)
		return errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST ? FILE_E_KIND : -errno;
	file->fd = fd_close(file->fd);
	return 0;
}

void new_file_deinit(struct new_file *file)
{
	if (file->fd >= 0)
		(void)unlinkat(file->directory, file->temporary, 0);
	fd_closep(&file->fd);
	fd_closep(&file->directory);
}

void new_file_remove(int root, const char *above, const char *temporary)
{
	_cleanup_(fd_closep) int directory = -1;

	if (file_directory(&directory, root, above) == 0)
		(void)unlinkat(directory, temporary, 0);
}
