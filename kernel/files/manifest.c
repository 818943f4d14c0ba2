/* Manifests: sorted arrays of files that are shared between states. */
#include "manifest.h"

#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

#define ROOM_FIRST 64

#define LOOK (STATX_BASIC_STATS | STATX_BTIME)

static struct timespec time_of(struct statx_timestamp stamp)
{
	return (struct timespec){.tv_sec = stamp.tv_sec, .tv_nsec = stamp.tv_nsec};
}

static void file_fill(struct file *file, const struct statx *status)
{
	file->mode = status->stx_mode;
	file->inode = status->stx_ino;
	file->links = status->stx_nlink;
	file->size = S_ISREG(status->stx_mode) ? status->stx_size : 0;
	file->stored = status->stx_blocks * 512;
	file->modified = time_of(status->stx_mtime);
	file->changed = time_of(status->stx_ctime);
	file->born = status->stx_mask & STATX_BTIME ? time_of(status->stx_btime) : (struct timespec){0};
}

struct file *file_look(int directory, const char *path, const char *name)
{
	size_t before = strlen(path), size = before + (before > 0) + strlen(name) + 1;
	struct statx status;
	struct file *file;

	if (statx(directory, name, AT_SYMLINK_NOFOLLOW | (name[0] ? 0 : AT_EMPTY_PATH), LOOK, &status) < 0)
		return NULL;
	file = calloc(1, sizeof(*file) + size);
	if (!file)
		return NULL;
	file->uses = 1;
	file_fill(file, &status);
	snprintf(file->path, size, "%s%s%s", path, before ? "/" : "", name);
	return file;
}

int file_look_again(struct file *file, int fd)
{
	struct statx status;

	if (statx(fd, "", AT_EMPTY_PATH, LOOK, &status) < 0)
		return -errno;
	file_fill(file, &status);
	return 0;
}

/* The kernel gives a lease to read only if nobody may write. Who wants to, waits until it is given back. */
bool file_is_held(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return true;
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

/* What lies above or beneath an overlay, it does not say. */
bool files_are_timeless(int fd)
{
	struct statfs system;

	return fstatfs(fd, &system) < 0 || system.f_type == TMPFS_MAGIC || system.f_type == OVERLAYFS_SUPER_MAGIC;
}

struct file *file_use(struct file *file)
{
	file->uses++;
	return file;
}

struct file *file_drop(struct store *store, struct file *file)
{
	if (file && --file->uses == 0) {
		blob_drop(store, file->content);
		free(file->target);
		free(file);
	}
	return NULL;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool file_same(const struct file *a, const struct file *b)
{
	return a->inode == b->inode && same_time(a->born, b->born);
}

bool file_untouched(const struct file *now, const struct file *then)
{
	return now->mode == then->mode && file_same(now, then) && now->size == then->size &&
	       now->links == then->links && same_time(now->changed, then->changed) &&
	       same_time(now->modified, then->modified);
}

static bool looks_fixed;

void files_look_fixed(void)
{
	looks_fixed = true;
}

static bool same_look(const struct file *now, const struct file *then)
{
	return looks_fixed ? (now->mode & S_IFMT) == (then->mode & S_IFMT)
			   : now->mode == then->mode && same_time(now->modified, then->modified);
}

bool file_alike(const struct file *now, const struct file *then)
{
	if (then->unkept)
		return file_untouched(now, then);
	if (S_ISLNK(now->mode) && S_ISLNK(then->mode) && strcmp(now->target, then->target) != 0)
		return false;
	return same_look(now, then) && now->size == then->size && now->content == then->content && !now->changing &&
	       !then->changing;
}

/* ---- manifests ---- */

struct manifest *manifest_new(void)
{
	struct manifest *manifest = calloc(1, sizeof(*manifest));

	if (manifest)
		manifest->uses = 1;
	return manifest;
}

struct manifest *manifest_use(struct manifest *manifest)
{
	if (manifest)
		manifest->uses++;
	return manifest;
}

struct manifest *manifest_drop(struct store *store, struct manifest *manifest)
{
	if (!manifest || --manifest->uses > 0)
		return NULL;
	for (size_t i = 0; i < manifest->n; i++)
		file_drop(store, manifest->files[i]);
	free(manifest->files);
	free(manifest);
	return NULL;
}

int manifest_add(struct store *store, struct manifest *manifest, struct file *file)
{
	if (manifest->n == manifest->room) {
		size_t room = manifest->room ? 2 * manifest->room : ROOM_FIRST;
		struct file **files = realloc(manifest->files, room * sizeof(*files));

		if (!files) {
			file_drop(store, file);
			return -ENOMEM;
		}
		manifest->files = files;
		manifest->room = room;
	}
	manifest->files[manifest->n++] = file;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct file *const *left = a, *const *right = b;

	return strcmp((*left)->path, (*right)->path);
}

void manifest_sort(struct manifest *manifest)
{
	if (manifest->n > 1)
		qsort(manifest->files, manifest->n, sizeof(*manifest->files), compare);
}

size_t manifest_place(const struct manifest *manifest, const char *path)
{
	size_t low = 0, high = manifest->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(manifest->files[middle]->path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct file *manifest_find(const struct manifest *manifest, const char *path)
{
	size_t at = manifest_place(manifest, path);

	return at < manifest->n && strcmp(manifest->files[at]->path, path) == 0 ? manifest->files[at] : NULL;
}

static int compare_inodes(const void *a, const void *b)
{
	const struct file *const *left = a, *const *right = b;

	if ((*left)->inode != (*right)->inode)
		return (*left)->inode < (*right)->inode ? -1 : 1;
	return strcmp((*left)->path, (*right)->path);
}

struct file **manifest_inodes(const struct manifest *manifest)
{
	struct file **files = malloc((manifest->n + 1) * sizeof(struct file *));

	if (!files)
		return NULL;
	if (manifest->n > 0)
		memcpy(files, manifest->files, manifest->n * sizeof(struct file *));
	qsort(files, manifest->n, sizeof(struct file *), compare_inodes);
	return files;
}

size_t inodes_place(struct file *const *files, size_t n, uint64_t inode)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (files[middle]->inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void manifest_lacks(struct manifest *manifest, const char *path, const char *why)
{
	if (!manifest->why[0])
		snprintf(manifest->why, sizeof(manifest->why), "%.100s: %s", path[0] ? path : ".", why);
}
