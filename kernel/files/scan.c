/* The look at a tree. A directory is read to its end before those in it are opened. Directories that wait are a
 * stack of paths. */
#include "scan.h"

#include "proto/beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

/* Copies for branches lie there, which have states of their own. */
#define BRANCHES ".branches"
/* Names that begin so are laird's own files on their way in, or ours. */
#define OURS ".lair-"
#define LOOK (S_IRUSR | S_IXUSR)

struct scan_opened {
	struct scan_opened *next;
	mode_t mode;
	char path[];
};

struct scan_directory {
	struct scan_directory *next;
	char path[];
};

static int push(struct scan *scan, const char *path)
{
	size_t size = strlen(path) + 1;
	struct scan_directory *directory = malloc(sizeof(*directory) + size);

	if (!directory)
		return -ENOMEM;
	memcpy(directory->path, path, size);
	directory->next = scan->waiting;
	scan->waiting = directory;
	return 0;
}

int scan_begin(struct scan *scan, struct store *store, int root)
{
	struct file *top;

	*scan = (struct scan){.store = store, .root = root, .found = manifest_new()};
	top = scan->found ? file_look(root, "", "") : NULL;
	if (!scan->found || !top)
		return scan->found ? -errno : -ENOMEM;
	if (manifest_add(store, scan->found, top))
		return -ENOMEM;
	return push(scan, "");
}

/* Its owner may have taken away the right to read it, or to pass. */
static void open_up(struct scan *scan, const char *path)
{
	size_t size = strlen(path) + 1;
	struct scan_opened *opened;
	struct stat status;

	if (fstatat(scan->root, path[0] ? path : ".", &status, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(status.st_mode) || (status.st_mode & LOOK) == LOOK ||
	    fchmodat(scan->root, path[0] ? path : ".", (status.st_mode & 07777) | LOOK, 0) < 0)
		return;
	opened = malloc(sizeof(*opened) + size);
	if (!opened)
		return;
	opened->mode = status.st_mode & 07777;
	memcpy(opened->path, path, size);
	opened->next = scan->opened;
	scan->opened = opened;
}

void scan_shut(struct scan *scan)
{
	struct scan_opened *opened;

	while ((opened = scan->opened)) {
		const char *path = opened->path[0] ? opened->path : ".";
		struct stat status;

		scan->opened = opened->next;
		if (fstatat(scan->root, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
		    (status.st_mode & 07777) == (opened->mode | LOOK) &&
		    fchmodat(scan->root, path, opened->mode, 0) < 0 && scan->found)
			manifest_lacks(scan->found, opened->path, strerror(errno));
		free(opened);
	}
}

void scan_deinit(struct scan *scan)
{
	struct scan_directory *directory;

	scan_shut(scan);
	while ((directory = scan->waiting)) {
		scan->waiting = directory->next;
		free(directory);
	}
	scan->found = manifest_drop(scan->store, scan->found);
}

/* A link may be replaced by a longer one meanwhile: then it is another one, which is seen the next time. */
static int take_target(struct file *file, int directory, const char *name)
{
	char target[PATH_MAX];
	ssize_t size = readlinkat(directory, name, target, sizeof(target) - 1);

	if (size < 0)
		return -errno;
	file->target = strndup(target, (size_t)size);
	return file->target ? 0 : -ENOMEM;
}

/* Nobody can say what is in it. */
static void directory_lacks(struct scan *scan, const char *path, int error)
{
	for (size_t i = scan->found->n; i > 0; i--) {
		struct file *file = scan->found->files[i - 1];

		if (strcmp(file->path, path) != 0)
			continue;
		file->unkept = true;
		break;
	}
	scan->found->partial = true;
	manifest_lacks(scan->found, path, strerror(error));
}

static int entry_see(struct scan *scan, int directory, const char *path, const char *name)
{
	struct file *file;
	int r = 0;

	if (strlen(path) + strlen(name) + 2 > PATH_MAX) {
		manifest_lacks(scan->found, path, "it lies too deep");
		scan->found->partial = true;
		return 0;
	}
	file = file_look(directory, path, name);
	if (!file && errno == EACCES)
		directory_lacks(scan, path, EACCES);
	if (!file)
		return errno == ENOMEM ? -ENOMEM : 0; /* it has gone */
	if (S_ISLNK(file->mode))
		r = take_target(file, directory, name);
	else if (S_ISDIR(file->mode))
		r = push(scan, file->path);
	if (r) {
		file_drop(scan->store, file);
		return r == -ENOMEM ? r : 0;
	}
	return manifest_add(scan->store, scan->found, file);
}

static bool is_ours(const char *path, const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strncmp(name, OURS, strlen(OURS)) == 0 ||
	       (!path[0] && strcmp(name, BRANCHES) == 0);
}

static DIR *directory_open(int root, const char *path)
{
	_cleanup_(fd_closep) int at = -1, fd = -1;
	int r = beneath_find(&at, root, path[0] ? path : ".", true);
	DIR *dir;

	if (r) {
		errno = -r;
		return NULL;
	}
	fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir)
		(void)steal_fd(&fd);
	return dir;
}

static int directory_read(struct scan *scan, const char *path, unsigned *seen)
{
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	open_up(scan, path);
	dir = directory_open(scan->root, path);
	if (!dir && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!dir) {
		directory_lacks(scan, path, errno);
		return 0;
	}
	while (!r && (entry = readdir(dir))) {
		++*seen;
		if (scan->found->n >= SCAN_FILES_MAX) {
			directory_lacks(scan, path, EMFILE);
			break;
		}
		if (!is_ours(path, entry->d_name))
			r = entry_see(scan, dirfd(dir), path, entry->d_name);
	}
	closedir(dir);
	return r;
}

int scan_step(struct scan *scan, unsigned entries)
{
	unsigned seen = 0;
	int r = 0;

	while (!r && scan->waiting && seen < entries) {
		struct scan_directory *directory = scan->waiting;

		scan->waiting = directory->next;
		r = directory_read(scan, directory->path, &seen);
		free(directory);
		seen++;
	}
	if (!r && !scan->waiting)
		manifest_sort(scan->found);
	return r ? r : scan->waiting != NULL;
}

/* It was looked at, and its content was not wanted. */
static bool is_hollow(const struct file *file)
{
	return S_ISREG(file->mode) && file->size > 0 && !file->content && !file->unkept;
}

void scan_share(struct store *store, struct manifest *found, const struct manifest *before)
{
	for (size_t i = 0, j = 0; before && i < found->n; i++) {
		struct file *now = found->files[i], *then;
		int order = -1;

		while (j < before->n && (order = strcmp(before->files[j]->path, now->path)) < 0)
			j++;
		then = j < before->n && order == 0 ? before->files[j] : NULL;
		if (!then || then->changing || is_hollow(then) || S_ISDIR(now->mode) != S_ISDIR(then->mode) ||
		    (S_ISDIR(now->mode) && now->unkept != then->unkept) || !file_untouched(now, then))
			continue;
		found->files[i] = file_use(then);
		file_drop(store, now);
	}
}

int parent_open(int *fdp, const char **namep, int root, const char *path)
{
	const char *slash = strrchr(path, '/');
	char above[PATH_MAX];

	*namep = slash ? slash + 1 : path;
	if ((size_t)snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".") >=
	    sizeof(above))
		return -ENAMETOOLONG;
	return beneath_find(fdp, root, above, true);
}
