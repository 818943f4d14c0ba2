/* The survey of a tree. A directory is read to its end before those in it are opened, so one descriptor is
 * enough and no position is ever restored. Directories that wait are a stack; each keeps the one above it, for
 * its path. Invariant: if the owner may not look into a directory, it is opened up only within one step. Between
 * two steps it has its mode, which may be kept or restored then. */
#include "survey.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LOOK (S_IRUSR | S_IXUSR)
#define BUFFER_SIZE 8192

struct survey_directory {
	struct survey_directory *next;	/* in the stack of directories that wait */
	struct survey_directory *above; /* NULL: it is the root */
	unsigned uses;			/* 1 for itself, and 1 for each directory that has it as `above` */
	char name[];			/* "": the root */
};

/* The layout that getdents64 writes. */
struct entry {
	uint64_t inode;
	int64_t next;
	unsigned short size;
	unsigned char type;
	char name[];
};

/* ---- directories ---- */

static struct survey_directory *directory_new(struct survey_directory *above, const char *name)
{
	size_t size = strlen(name) + 1;
	struct survey_directory *directory = malloc(sizeof(*directory) + size);

	if (!directory)
		return NULL;
	*directory = (struct survey_directory){.above = above, .uses = 1};
	memcpy(directory->name, name, size);
	if (above)
		above->uses++;
	return directory;
}

/* Writes the path so that it ends with @buffer. NULL if it does not fit. */
static const char *directory_path(const struct survey_directory *directory, char buffer[static PATH_MAX])
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

static void directory_release(struct survey_directory *directory)
{
	while (directory && --directory->uses == 0) {
		struct survey_directory *above = directory->above;

		free(directory);
		directory = above;
	}
}

/* While we look, a session may replace the directory, but only by one of its own. That can falsify this one sum.
 * The session can do the same by moving files to a directory that we have read already. */
static int directory_reach(struct survey *survey, int *fdp)
{
	char buffer[PATH_MAX];
	const char *path = directory_path(survey->reading, buffer);

	return path ? reach_directory(&survey->reach, fdp, path) : -ENAMETOOLONG;
}

/* ---- the walk ---- */

static bool has_gone(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

static void survey_push(struct survey *survey, const char *name)
{
	struct survey_directory *directory = directory_new(survey->reading, name);

	if (!directory) {
		survey->blind = true;
		return;
	}
	directory->next = survey->waiting;
	survey->waiting = directory;
}

/* A file with several names counts a part of its size under each of them. */
static void entry_count(struct survey *survey, const char *name)
{
	struct stat status;
	int at, r = fstatat(survey->fd, name, &status, AT_SYMLINK_NOFOLLOW);

	/* It may have been opened up, and have its mode since. */
	if (r < 0 && errno == EACCES && !directory_reach(survey, &at))
		r = fstatat(survey->fd, name, &status, AT_SYMLINK_NOFOLLOW);
	if (r < 0) {
		survey->blind |= !has_gone(errno);
		return;
	}
	survey->files++;
	if (S_ISDIR(status.st_mode)) {
		survey->size += (uint64_t)status.st_blocks * 512;
		survey_push(survey, name);
	} else if (status.st_nlink > 0) {
		survey->size += (uint64_t)status.st_blocks * 512 / status.st_nlink;
	}
}

/* Returns how many entries there were; 0 at the end of the directory. */
static unsigned entries_read(struct survey *survey)
{
	_Alignas(struct entry) char buffer[BUFFER_SIZE];
	long size = syscall(SYS_getdents64, survey->fd, buffer, sizeof(buffer));
	unsigned n = 0;

	if (size < 0)
		survey->blind |= !has_gone(errno);
	for (long at = 0; at < size; n++) {
		const struct entry *entry = (const struct entry *)(buffer + at);

		at += entry->size;
		if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0)
			entry_count(survey, entry->name);
	}
	return n;
}

static void reading_end(struct survey *survey)
{
	survey->fd = fd_close(survey->fd);
	directory_release(survey->reading);
	survey->reading = NULL;
}

static void reading_begin(struct survey *survey)
{
	int at, r;

	survey->reading = survey->waiting;
	survey->waiting = survey->reading->next;
	r = directory_reach(survey, &at);
	if (!r)
		survey->fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (survey->fd < 0) {
		survey->blind |= !has_gone(r ? -r : errno);
		reading_end(survey);
	}
}

static void survey_end(struct survey *survey)
{
	struct survey_directory *directory;

	(void)reach_shut(&survey->reach);
	survey->reach.root = fd_close(survey->reach.root);
	reading_end(survey);
	while ((directory = survey->waiting)) {
		survey->waiting = directory->next;
		directory_release(directory);
	}
}

void survey_begin(struct survey *survey, const char *root, uint64_t size_max, uint64_t files_max)
{
	int fd, r = directory_open(&fd, AT_FDCWD, root);

	survey_end(survey);
	*survey = SURVEY_NONE;
	survey->size_max = size_max;
	survey->files_max = files_max;
	survey->blind = r && !has_gone(-r);
	reach_init(&survey->reach, fd, LOOK);
	if (!r)
		survey_push(survey, "");
}

bool survey_step(struct survey *survey, unsigned entries)
{
	unsigned done = 0;

	while (done < entries) {
		unsigned n;

		if (survey->size > survey->size_max || survey->files > survey->files_max ||
		    (survey->fd < 0 && !survey->waiting)) {
			survey_end(survey);
			return true;
		}
		if (survey->fd < 0) {
			reading_begin(survey);
			done++;
			continue;
		}
		n = entries_read(survey);
		done += n;
		if (n == 0)
			reading_end(survey);
	}
	if (survey->reach.opened)
		(void)reach_shut(&survey->reach);
	return false;
}
