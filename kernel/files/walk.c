/* The walk. A directory is read to its end before those in it are entered, so one descriptor is enough and no
 * position is ever restored. Directories that wait are a stack; each keeps the one above it, for its path. */
#include "walk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define BUFFER_SIZE 8192

struct walk_directory {
	struct walk_directory *next;  /* in the stack of directories that wait */
	struct walk_directory *above; /* NULL: it is the root */
	size_t tag;
	unsigned uses; /* 1 for itself, and 1 for each directory that has it as `above` */
	char name[];   /* "": the root */
};

bool walk_is_branches(const struct walk *walk, const char *name)
{
	return !walk->path[0] && strcmp(name, BRANCHES) == 0;
}

bool walk_has_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

/* ---- directories ---- */

static int push(struct walk *walk, const char *name)
{
	size_t size = strlen(name) + 1;
	struct walk_directory *directory = malloc(sizeof(*directory) + size);

	if (!directory)
		return -ENOMEM;
	*directory = (struct walk_directory){
		.next = walk->waiting, .above = walk->reading, .tag = walk->tag_below, .uses = 1};
	memcpy(directory->name, name, size);
	if (walk->reading)
		walk->reading->uses++;
	walk->waiting = directory;
	return 0;
}

/* Writes the path so that it ends with @buffer. NULL if it does not fit. */
static const char *path_of(const struct walk_directory *directory, char buffer[static PATH_MAX])
{
	char *at = buffer + PATH_MAX - 1;

	*at = '\0';
	for (; directory->above; directory = directory->above) {
		size_t size = strlen(directory->name);

		if ((size_t)(at - buffer) < size + 1)
			return NULL;
		if (*at)
			*--at = '/';
		at -= size;
		memcpy(at, directory->name, size);
	}
	return at;
}

static void release(struct walk_directory *directory)
{
	while (directory && --directory->uses == 0) {
		struct walk_directory *above = directory->above;

		free(directory);
		directory = above;
	}
}

static void leave(struct walk *walk)
{
	walk->fd = fd_close(walk->fd);
	release(walk->reading);
	walk->reading = NULL;
}

static int open_here(struct walk *walk)
{
	int at, r = reach_directory(&walk->reach, &at, walk->path);

	if (!r)
		walk->fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return walk->fd >= 0 ? 0 : r ? r : -errno;
}

static int enter(struct walk *walk)
{
	struct walk_directory *directory = walk->waiting;
	int r = -ENAMETOOLONG;

	walk->waiting = directory->next;
	walk->reading = directory;
	walk->tag = directory->tag;
	walk->path = path_of(directory, walk->buffer);
	if (walk->path)
		r = open_here(walk);
	if (r) {
		r = walk->visitor->lost(walk, walk->path ? walk->path : directory->name, r);
		leave(walk);
		return r;
	}
	return walk->visitor->enter ? walk->visitor->enter(walk) : 0;
}

/* ---- entries ---- */

static int see(struct walk *walk, const struct dirent64 *entry)
{
	unsigned char type = entry->d_type;
	struct stat status;
	int r;

	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return WALK_ON;
	if (type == DT_UNKNOWN && fstatat(walk->fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		type = IFTODT(status.st_mode);
	r = walk->visitor->see(walk, entry->d_name, type);
	return r == WALK_INTO ? push(walk, entry->d_name) : r;
}

/* Reads some of the directory at hand, or leaves it. *@seen: how many entries there were. */
static int read_some(struct walk *walk, unsigned *seen)
{
	char buffer[BUFFER_SIZE] __attribute__((aligned(__alignof__(struct dirent64))));
	long size = syscall(SYS_getdents64, walk->fd, buffer, sizeof(buffer));
	int r = size < 0 ? walk->visitor->lost(walk, walk->path, -errno) : 0;

	for (long at = 0; r == WALK_ON && at < size; ++*seen) {
		const struct dirent64 *entry = (const void *)(buffer + at);

		at += entry->d_reclen;
		r = see(walk, entry);
	}
	if (size <= 0 || r == WALK_LEAVE)
		leave(walk);
	return MIN(r, 0);
}

/* ---- the walk ---- */

int walk_begin(struct walk *walk, int root, mode_t rights, const struct walk_visitor *visitor, void *userdata)
{
	*walk = (struct walk)WALK_NONE;
	walk->visitor = visitor;
	walk->userdata = userdata;
	reach_init(&walk->reach, root, rights);
	return root < 0 ? 0 : push(walk, "");
}

bool walk_busy(const struct walk *walk)
{
	return walk->fd >= 0 || walk->waiting;
}

/* The directory at hand may have been shut since the last step. If it was not, nothing is opened up: those above it
 * are not needed before the next one is entered. */
static void open_again(struct walk *walk)
{
	mode_t rights = walk->reach.rights;
	struct stat status;
	int at;

	if (walk->fd >= 0 && fstat(walk->fd, &status) == 0 && (status.st_mode & rights) != rights)
		(void)reach_directory(&walk->reach, &at, walk->path);
}

int walk_step(struct walk *walk, unsigned entries)
{
	unsigned seen = 0;
	int r = 0;

	open_again(walk);
	while (!r && walk_busy(walk) && seen < entries) {
		if (walk->fd >= 0) {
			r = read_some(walk, &seen);
		} else {
			r = enter(walk);
			seen++;
		}
	}
	return r ? r : walk_busy(walk);
}

void walk_leave(struct walk *walk)
{
	walk->fd = fd_close(walk->fd);
	reach_leave(&walk->reach);
}

void walk_end(struct walk *walk)
{
	struct walk_directory *directory;

	leave(walk);
	while ((directory = walk->waiting)) {
		walk->waiting = directory->next;
		release(directory);
	}
	reach_leave(&walk->reach);
}
