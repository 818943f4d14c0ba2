/* The survey of a tree. Invariant: if the owner may not look into a directory, it is opened up only within one
 * step. Between two steps it has its mode, which may be kept or restored then. */
#include "survey.h"

#include <fcntl.h>
#include <sys/stat.h>

#define LOOK (S_IRUSR | S_IXUSR)

/* While we look, a session may replace the directory, but only by one of its own. That can falsify this one sum.
 * The session can do the same by moving files to a directory that we have read already. */
static int directory_lost(struct walk *walk, const char *path, int r)
{
	struct survey *survey = walk->userdata;

	survey->blind |= !walk_has_gone(r);
	return 0;
}

/* A file with several names counts a part of its size under each of them. */
static int entry_count(struct walk *walk, const char *name, unsigned char type)
{
	struct survey *survey = walk->userdata;
	struct stat status;

	if (fstatat(walk->fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		survey->blind |= !walk_has_gone(-errno);
		return WALK_ON;
	}
	survey->files++;
	if (S_ISDIR(status.st_mode) || status.st_nlink > 0)
		survey->size += (uint64_t)status.st_blocks * 512 / (S_ISDIR(status.st_mode) ? 1 : status.st_nlink);
	if (survey->size > survey->size_max || survey->files > survey->files_max)
		return -EFBIG;
	return S_ISDIR(status.st_mode) ? WALK_INTO : WALK_ON;
}

static void survey_end(struct survey *survey)
{
	(void)reach_shut(&survey->walk.reach);
	walk_end(&survey->walk);
	survey->walk.reach.root = fd_close(survey->walk.reach.root);
}

void survey_begin(struct survey *survey, const char *root, uint64_t size_max, uint64_t files_max)
{
	static const struct walk_visitor visitor = {.see = entry_count, .lost = directory_lost};
	int fd, r = directory_open(&fd, AT_FDCWD, root);

	survey_end(survey);
	survey->size = survey->files = 0;
	survey->size_max = size_max;
	survey->files_max = files_max;
	survey->blind = r && !walk_has_gone(r);
	if (walk_begin(&survey->walk, fd, LOOK, &visitor, survey))
		survey->blind = true;
}

bool survey_step(struct survey *survey, unsigned entries)
{
	int r = walk_step(&survey->walk, entries);

	if (r == -ENOMEM)
		survey->blind = true;
	if (r == 1)
		(void)reach_pause(&survey->walk.reach);
	else
		survey_end(survey);
	return r != 1;
}
