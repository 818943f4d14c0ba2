/* The look at a tree, by a walk whose directories have their places in what was found as tags. */
#include "scan.h"

#include <fcntl.h>
#include <stdio.h>

/* Names that begin so are laird's own files on their way in, or ours. */
#define OURS ".lair-"
#define LOOK (S_IRUSR | S_IXUSR)

/* Nobody can say what is in the directory at hand. */
static void directory_lacks(struct scan *scan, const char *path, int error)
{
	scan->found->files[scan->walk.tag]->unkept = true;
	scan->found->partial = true;
	manifest_lacks(scan->found, path, strerror(error));
}

static int directory_lost(struct walk *walk, const char *path, int r)
{
	if (r != -ENOENT && r != -ENOTDIR)
		directory_lacks(walk->userdata, path, -r);
	return r == -ENOMEM ? r : 0;
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

static bool is_held(int directory, const char *name)
{
	_cleanup_(fd_closep) int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 || file_is_held(fd);
}

static int file_see(struct walk *walk, const char *name)
{
	struct scan *scan = walk->userdata;
	struct file *file = file_look(walk->fd, walk->path, name);
	bool is_directory;
	int r = 0;

	if (!file && errno == EACCES)
		directory_lacks(scan, walk->path, EACCES);
	if (!file)
		return errno == ENOMEM ? -ENOMEM : WALK_ON; /* it has gone */
	if (S_ISLNK(file->mode))
		r = take_target(file, walk->fd, name);
	if (r) {
		file_drop(scan->store, file);
		return r == -ENOMEM ? r : WALK_ON;
	}
	file->changing = scan->timeless && S_ISREG(file->mode) && file->size > 0 && is_held(walk->fd, name);
	is_directory = S_ISDIR(file->mode);
	walk->tag_below = scan->found->n;
	r = manifest_add(scan->store, scan->found, file);
	return r ? r : is_directory ? WALK_INTO : WALK_ON;
}

static int entry_see(struct walk *walk, const char *name, unsigned char type)
{
	struct scan *scan = walk->userdata;

	if (scan->found->n >= SCAN_FILES_MAX) {
		directory_lacks(scan, walk->path, EMFILE);
		return WALK_LEAVE;
	}
	if (strncmp(name, OURS, strlen(OURS)) == 0 || walk_is_branches(walk, name))
		return WALK_ON;
	if (strlen(walk->path) + strlen(name) + 2 > PATH_MAX) {
		manifest_lacks(scan->found, walk->path, "it lies too deep");
		scan->found->partial = true;
		return WALK_ON;
	}
	return file_see(walk, name);
}

int scan_begin(struct scan *scan, struct store *store, int root)
{
	static const struct walk_visitor visitor = {.see = entry_see, .lost = directory_lost};
	struct file *top;
	int r;

	scan->store = store;
	scan->found = manifest_new();
	scan->timeless = files_are_timeless(root);
	r = walk_begin(&scan->walk, root, LOOK, &visitor, scan);
	if (r || !scan->found)
		return -ENOMEM;
	top = file_look(root, "", "");
	return top ? manifest_add(store, scan->found, top) : -errno;
}

int scan_step(struct scan *scan, unsigned entries)
{
	int r = walk_step(&scan->walk, entries);

	if (!r)
		manifest_sort(scan->found);
	return r;
}

void scan_shut(struct scan *scan)
{
	int r = reach_shut(&scan->walk.reach);

	if (r && scan->found)
		manifest_lacks(scan->found, "", strerror(-r));
}

void scan_deinit(struct scan *scan)
{
	scan_shut(scan);
	walk_end(&scan->walk);
	scan->found = manifest_drop(scan->store, scan->found);
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
		if (!then || now->changing || then->changing || is_hollow(then) ||
		    S_ISDIR(now->mode) != S_ISDIR(then->mode) ||
		    (S_ISDIR(now->mode) && now->unkept != then->unkept) || !file_untouched(now, then))
			continue;
		found->files[i] = file_use(then);
		file_drop(store, now);
	}
}
