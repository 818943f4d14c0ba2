/* The look at a tree. A directory is read to its end before those in it are opened. Directories that wait are a
 * stack of paths. */
#include "scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

/* Copies for branches lie there, which have states of their own. */
#define BRANCHES ".branches"
/* Names that begin so are laird's own files on their way in, or ours. */
#define OURS ".lair-"
#define LOOK (S_IRUSR | S_IXUSR)

struct scan_directory {
	struct scan_directory *next;
	size_t at; /* in what was found */
	char path[];
};

/* The one that is found next. */
static int push(struct scan *scan, const char *path)
{
	size_t size = strlen(path) + 1;
	struct scan_directory *directory = malloc(sizeof(*directory) + size);

	if (!directory)
		return -ENOMEM;
	memcpy(directory->path, path, size);
	directory->at = scan->found->n;
	directory->next = scan->waiting;
	scan->waiting = directory;
	return 0;
}

int scan_begin(struct scan *scan, struct store *store, int root)
{
	struct file *top;

	*scan = (struct scan){.store = store, .found = manifest_new()};
	reach_init(&scan->reach, root, LOOK);
	top = scan->found ? file_look(root, "", "") : NULL;
	if (!scan->found || !top)
		return scan->found ? -errno : -ENOMEM;
	if (push(scan, "")) {
		file_drop(store, top);
		return -ENOMEM;
	}
	return manifest_add(store, scan->found, top);
}

void scan_shut(struct scan *scan)
{
	int r = reach_shut(&scan->reach);

	if (r && scan->found)
		manifest_lacks(scan->found, "", strerror(-r));
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
static void directory_lacks(struct scan *scan, const struct scan_directory *directory, int error)
{
	scan->found->files[directory->at]->unkept = true;
	scan->found->partial = true;
	manifest_lacks(scan->found, directory->path, strerror(error));
}

static int entry_see(struct scan *scan, int directory, const struct scan_directory *above, const char *name)
{
	const char *path = above->path;
	struct file *file;
	int r = 0;

	if (strlen(path) + strlen(name) + 2 > PATH_MAX) {
		manifest_lacks(scan->found, path, "it lies too deep");
		scan->found->partial = true;
		return 0;
	}
	file = file_look(directory, path, name);
	if (!file && errno == EACCES)
		directory_lacks(scan, above, EACCES);
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

/* Returns 0 or -errno. */
static int stream_open(DIR **streamp, struct scan *scan, const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	int at, r = reach_directory(&scan->reach, &at, path);

	if (r)
		return r;
	fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*streamp = fd < 0 ? NULL : fdopendir(fd);
	if (!*streamp)
		return -errno;
	(void)steal_fd(&fd);
	return 0;
}

static int directory_read(struct scan *scan, const struct scan_directory *directory, unsigned *seen)
{
	struct dirent *entry;
	DIR *stream = NULL;
	int r = stream_open(&stream, scan, directory->path);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (!stream) {
		directory_lacks(scan, directory, -r);
		return r == -ENOMEM ? r : 0;
	}
	while (!r && (entry = readdir(stream))) {
		++*seen;
		if (scan->found->n >= SCAN_FILES_MAX) {
			directory_lacks(scan, directory, EMFILE);
			break;
		}
		if (!is_ours(directory->path, entry->d_name))
			r = entry_see(scan, dirfd(stream), directory, entry->d_name);
	}
	closedir(stream);
	return r;
}

int scan_step(struct scan *scan, unsigned entries)
{
	unsigned seen = 0;
	int r = 0;

	while (!r && scan->waiting && seen < entries) {
		struct scan_directory *directory = scan->waiting;

		scan->waiting = directory->next;
		r = directory_read(scan, directory, &seen);
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
