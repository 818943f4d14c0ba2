/* Bringing back. For each file that is not what it was there is an act. A file that is still there keeps its inode,
 * so descriptors and maps of it go on; its content is written in place, and only where it differs. One that has
 * only another name gets its own back. The phases: new files are made, and grown ones grow; what should not be
 * there is removed; directories are made; files get their names, contents, modes and times. Up to the end of the
 * first everything can be taken back. */
#include "revert.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>

#define PIECE (256U << 10)
#define STEP (4ULL << 20)
#define ACT_COST (16U << 10)
/* So many pieces of a file are looked at in one step. */
#define PIECES 256
#define TEMPORARY ".lair-back-%08x-%u"

struct piece {
	uint64_t at, size;
};

struct act {
	struct file *now, *then; /* either may be NULL */
	bool in_place;		 /* the file that is there is the one that was */
	bool lost;		 /* its content was not kept */
	bool failed;
	bool done;	      /* a directory that is there */
	uint64_t grown, size; /* in place: it had that size, and one more; so much of it is written */
	struct piece *holes;  /* that it had, and that were filled */
	size_t n_holes;
	const struct file *live; /* in place: what was there, under any name */
	unsigned temporary;	 /* the number of its temporary name; 0: none */
	uint64_t inode;		 /* of the new file that was made under that name */
};

enum {
	PHASE_MAKE,
	PHASE_REMOVE,
	PHASE_DIRECTORIES,
	PHASE_NAMES,
	PHASE_CONTENTS,
	PHASE_LOOKS,
	_PHASE_N,
};

/* ---- the plan ---- */

static bool is_linked(const struct file *now, const struct file *then)
{
	return S_ISREG(then->mode) && (now->links > 1 || then->links > 1);
}

static bool differs(const struct file *now, const struct file *then)
{
	if (now == then)
		return now && now->changing;
	if (!now || !then || !file_alike(now, then))
		return true;
	return is_linked(now, then) && (!file_same(now, then) || now->links != then->links);
}

void revert_compare(const struct manifest *now, const struct manifest *then,
		    void (*tell)(void *userdata, struct file *now, struct file *then), void *userdata)
{
	size_t i = 0, j = 0;

	if (now == then && !now->changing)
		return;
	while (i < now->n || j < then->n) {
		struct file *left = i < now->n ? now->files[i] : NULL, *right = j < then->n ? then->files[j] : NULL;
		int order = left == right ? 0 : !left ? 1 : !right ? -1 : strcmp(left->path, right->path);

		i += order <= 0;
		j += order >= 0;
		left = order <= 0 ? left : NULL;
		right = order >= 0 ? right : NULL;
		if (differs(left, right))
			tell(userdata, left, right);
	}
}

static void count(void *userdata, struct file *now, struct file *then)
{
	size_t *n = userdata;

	(void)now;
	(void)then;
	++*n;
}

/* Whether something above it could not be looked into then: nobody knows what was there. */
static bool is_unknown(const struct manifest *target, const char *path)
{
	char above[PATH_MAX];
	char *slash;

	snprintf(above, sizeof(above), "%s", path);
	do {
		const struct file *directory;

		slash = strrchr(above, '/');
		*(slash ? slash : above) = '\0';
		directory = manifest_find(target, above);
		if (directory && directory->unkept)
			return true;
	} while (slash);
	return false;
}

static bool same_kind(const struct file *a, const struct file *b)
{
	return (a->mode & S_IFMT) == (b->mode & S_IFMT);
}

static void plan(void *userdata, struct file *now, struct file *then)
{
	struct revert *revert = userdata;
	struct act *act = &revert->acts[revert->n];

	if (now && !then && revert->target->partial && is_unknown(revert->target, now->path))
		return;
	*act = (struct act){.now = now, .then = then};
	act->in_place = now && then && same_kind(now, then) && (S_ISDIR(now->mode) || file_same(now, then));
	act->live = now;
	act->lost = then && S_ISREG(then->mode) && then->size > 0 && !then->content;
	revert->n++;
}

int revert_begin(struct revert *revert, struct store *store, int root, struct manifest *now,
		 struct manifest *target)
{
	unsigned salt;
	size_t n = 0;

	*revert = (struct revert){.store = store, .made = -1};
	reach_init(&revert->reach, root, S_IRWXU);
	revert->now = manifest_use(now);
	revert->target = manifest_use(target);
	revert_compare(now, target, count, &n);
	revert->acts = calloc(n + 1, sizeof(*revert->acts));
	revert->touched = calloc(target->n + 1, sizeof(*revert->touched));
	if (!revert->acts || !revert->touched)
		return -ENOMEM;
	if (getrandom(&salt, sizeof(salt), 0) == sizeof(salt))
		revert->serial = salt >> 1;
	revert_compare(now, target, plan, revert);
	return 0;
}

void revert_deinit(struct revert *revert)
{
	fd_closep(&revert->made);
	(void)reach_shut(&revert->reach);
	for (size_t i = 0; i < revert->n; i++)
		free(revert->acts[i].holes);
	free(revert->acts);
	free(revert->touched);
	free(revert->inodes);
	free(revert->linked);
	revert->now = manifest_drop(revert->store, revert->now);
	revert->target = manifest_drop(revert->store, revert->target);
}

static void fail(struct revert *revert, const char *path, const char *why)
{
	if (!revert->why[0])
		snprintf(revert->why, sizeof(revert->why), "%.120s: %s", path[0] ? path : ".", why);
}

static const char *act_path(const struct act *act)
{
	return act->then ? act->then->path : act->now->path;
}

static void act_fail(struct revert *revert, struct act *act, const char *why)
{
	act->failed = true;
	fail(revert, act_path(act), why);
}

/* ---- places ---- */

/* Something in the directory changes, or its mode does. */
static void touch(struct revert *revert, const char *directory)
{
	size_t at = manifest_place(revert->target, directory);

	if (at < revert->target->n && strcmp(revert->target->files[at]->path, directory) == 0)
		revert->touched[at] = true;
}

static void touch_above(struct revert *revert, const char *path)
{
	const char *slash = strrchr(path, '/');
	char above[PATH_MAX];

	snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 0, path);
	touch(revert, above);
}

/* The directory in which @path lies, borrowed, and its last component; those that are opened up for that get their
 * modes back at the end. */
static int enter(struct revert *revert, int *fdp, const char **namep, const char *path)
{
	const struct reach_opened *before = revert->reach.opened;
	int r = reach_parent(&revert->reach, fdp, namep, path);

	for (const struct reach_opened *it = revert->reach.opened; it != before; it = it->next)
		touch(revert, it->path);
	return r;
}

/* The same, to change something there. */
static int enter_to_change(struct revert *revert, int *fdp, const char **namep, const char *path)
{
	touch_above(revert, path);
	return enter(revert, fdp, namep, path);
}

/* Temporary names lie in the root. */
static int enter_root(struct revert *revert)
{
	const char *name;
	int fd;

	return enter_to_change(revert, &fd, &name, "");
}

static void temporary_name(char out[static 48], const struct revert *revert, unsigned number)
{
	snprintf(out, 48, TEMPORARY, revert->serial, number);
}

/* ---- contents ---- */

/* Returns how far it came, or -errno. */
static int64_t put_content(int fd, const struct blob *content, uint64_t at)
{
	uint64_t until = MIN(content->size, at + STEP);

	while (at < until) {
		ssize_t n = blob_put(content, fd, at, until - at);

		if (n < 0)
			return n;
		at += (uint64_t)n;
	}
	return (int64_t)at;
}

/* ---- making ---- */

/* What is there now under any name, if it stays that file, or may be used. */
static const struct file *live_of(struct revert *revert, const struct file *then)
{
	if (!revert->inodes)
		revert->inodes = manifest_inodes(revert->now);
	if (!revert->inodes)
		return NULL;
	for (size_t i = inodes_place(revert->inodes, revert->now->n, then->inode);
	     i < revert->now->n && revert->inodes[i]->inode == then->inode; i++) {
		const struct file *now = revert->inodes[i];
		const struct file *other = manifest_find(revert->target, now->path);

		if (file_same(now, then) && S_ISREG(now->mode) &&
		    (!other || !same_kind(now, other) || differs(now, other)))
			return now;
	}
	return NULL;
}

static int compare_acts(const void *a, const void *b)
{
	const struct act *left = *(struct act *const *)a, *right = *(struct act *const *)b;

	if (left->then->inode != right->then->inode)
		return left->then->inode < right->then->inode ? -1 : 1;
	return left < right ? -1 : left > right;
}

/* The acts of files with several names, in the order of their inodes. */
static bool linked_list(struct revert *revert)
{
	if (revert->linked)
		return true;
	revert->linked = malloc((revert->n + 1) * sizeof(struct act *));
	for (size_t i = 0; revert->linked && i < revert->n; i++) {
		struct act *act = &revert->acts[i];

		if (act->then && S_ISREG(act->then->mode) && act->then->links > 1)
			revert->linked[revert->n_linked++] = act;
	}
	if (revert->linked)
		qsort(revert->linked, revert->n_linked, sizeof(struct act *), compare_acts);
	return revert->linked;
}

/* One that was made already, of which this is another name. */
static const struct act *made_of(struct revert *revert, const struct act *act)
{
	size_t low = 0, high;

	if (act->then->links < 2 || !linked_list(revert))
		return NULL;
	for (high = revert->n_linked; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (revert->linked[middle]->then->inode < act->then->inode)
			low = middle + 1;
		else
			high = middle;
	}
	for (; revert->linked[low] != act; low++)
		if (revert->linked[low]->temporary && !revert->linked[low]->failed &&
		    file_same(revert->linked[low]->then, act->then))
			return revert->linked[low];
	return NULL;
}

static int link_from(struct revert *revert, int parent, const char *name, const char *temporary)
{
	return linkat(parent, name, revert->reach.root, temporary, 0) < 0 ? -errno : 0;
}

static int link_live(struct revert *revert, const struct file *live, const char *temporary)
{
	const char *name;
	int parent, r = enter(revert, &parent, &name, live->path);

	return r ? r : link_from(revert, parent, name, temporary);
}

/* Returns 1 if there is more to write, 0 or -errno. */
static int make_more(struct revert *revert, struct act *act)
{
	int64_t at = act->then->size > 0 ? put_content(revert->made, act->then->content, act->size) : 0;
	struct stat status;

	if (at < 0)
		return (int)at;
	act->size = (uint64_t)at;
	if (act->size < act->then->size)
		return 1;
	if (ftruncate(revert->made, (off_t)act->then->size) < 0 || fstat(revert->made, &status) < 0)
		return -errno;
	act->inode = status.st_ino;
	fd_closep(&revert->made);
	return 0;
}

/* Its name is in the session's reach, so it is not opened by that again. */
static int make_new(struct revert *revert, struct act *act, const char *temporary)
{
	mode_t mask = umask(0);
	int r = 0;

	revert->made = openat(revert->reach.root, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			      (act->then->mode & 0777) | S_IWUSR);
	if (revert->made < 0)
		r = -errno;
	umask(mask);
	return r ? r : make_more(revert, act);
}

static int make_begin(struct revert *revert, struct act *act)
{
	const struct file *live = live_of(revert, act->then);
	const struct act *made = live ? NULL : made_of(revert, act);
	char temporary[48], other[48];
	int r = enter_root(revert);

	if (r)
		return r;
	act->temporary = (unsigned)(act - revert->acts) + 1;
	temporary_name(temporary, revert, act->temporary);
	if (live && link_live(revert, live, temporary) == 0) {
		act->in_place = true; /* the content, too */
		act->live = live;
		return 0;
	}
	if (made) {
		temporary_name(other, revert, made->temporary);
		if (link_from(revert, revert->reach.root, other, temporary) == 0) {
			act->inode = made->inode;
			return 0;
		}
	}
	if (act->lost) {
		act->temporary = 0;
		act_fail(revert, act, "its content was not kept");
		return 0;
	}
	return make_new(revert, act, temporary);
}

static int open_in_place(struct revert *revert, const struct file *file)
{
	const char *name;
	int parent, r = enter(revert, &parent, &name, file->path);

	return r ? r : reach_file(&revert->reach, file->path, O_RDWR);
}

static bool needs_content(const struct act *act)
{
	return act->then && S_ISREG(act->then->mode) && act->then->size > 0 && !act->lost &&
	       (act->now ? act->now->content != act->then->content || act->now->changing || act->then->changing ||
				   act->temporary
			 : act->temporary && act->in_place);
}

/* In place, under the name that it has for now. */
static int open_live(struct revert *revert, const struct act *act)
{
	char temporary[48];

	temporary_name(temporary, revert, act->temporary);
	return act->temporary ? reach_file(&revert->reach, temporary, O_RDWR) : open_in_place(revert, act->now);
}

static bool note_hole(struct act *act, struct piece hole)
{
	struct piece *last = act->n_holes > 0 ? &act->holes[act->n_holes - 1] : NULL, *holes;

	if (last && last->at + last->size == hole.at) {
		last->size += hole.size;
		return true;
	}
	holes = act->n_holes & (act->n_holes - 1) ? act->holes
						  : realloc(act->holes, 2 * (act->n_holes + 1) * sizeof(*holes));
	if (!holes)
		return false;
	act->holes = holes;
	act->holes[act->n_holes++] = hole;
	return true;
}

/* Write what it lacks. Returns how many bytes that is, perhaps 0, or -errno. */
static int64_t fill_piece(struct act *act, int fd)
{
	bool lacks;
	uint64_t size = blob_lacks(act->then->content, fd, act->size, STEP, &lacks);

	if (lacks && !note_hole(act, (struct piece){.at = act->size, .size = size}))
		return -ENOMEM;
	for (uint64_t done = 0; lacks && done < size;) {
		ssize_t n = blob_put(act->then->content, fd, act->size + done, size - done);

		if (n < 0)
			return n;
		done += (uint64_t)n;
	}
	act->size += size;
	return lacks ? (int64_t)size : 0;
}

/* What it lacks is written into its holes and behind its end, and could be taken out again. */
static int grow(struct revert *revert, struct act *act)
{
	_cleanup_(fd_closep) int fd = open_live(revert, act);
	struct stat status;
	int64_t n = 0;

	if (fd == -EACCES && !act->temporary) {
		act->in_place = false;
		return make_begin(revert, act);
	}
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!act->grown)
		act->grown = (uint64_t)status.st_size + 1;
	for (int i = 0; i < PIECES && n == 0 && act->size < act->then->size; i++)
		n = fill_piece(act, fd);
	return n < 0 ? (int)n : act->size < act->then->size;
}

static int make(struct revert *revert, struct act *act)
{
	int r;

	if (!act->then || act->failed || !S_ISREG(act->then->mode))
		return 0;
	if (!act->in_place && !act->temporary) {
		r = make_begin(revert, act);
		return r || !act->in_place ? r : needs_content(act);
	}
	if (!act->in_place)
		return act->size < act->then->size ? make_more(revert, act) : 0;
	if (act->lost && !act->temporary) {
		act_fail(revert, act, "its content was not kept");
		return 0;
	}
	return needs_content(act) ? grow(revert, act) : 0;
}

static void shrink(struct revert *revert, struct act *act)
{
	const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, act->live->modified};
	_cleanup_(fd_closep) int fd = open_live(revert, act);

	act->failed = fd < 0 || ftruncate(fd, (off_t)(act->grown - 1)) < 0;
	for (size_t i = 0; fd >= 0 && i < act->n_holes; i++)
		act->failed |= fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)act->holes[i].at,
					 (off_t)act->holes[i].size) < 0;
	if (fd >= 0)
		act->failed |= futimens(fd, times) < 0;
}

/* The last first: some may be names of one file. */
static void take_back(struct revert *revert)
{
	char temporary[48];

	for (size_t i = revert->n; i > 0; i--) {
		struct act *act = &revert->acts[i - 1];

		if (act->grown)
			shrink(revert, act);
		temporary_name(temporary, revert, act->temporary);
		if (act->temporary)
			(void)unlinkat(revert->reach.root, temporary, 0);
	}
}

/* ---- removing, and directories ---- */

static int remove_one(struct revert *revert, struct act *act)
{
	const char *name;
	int flags = act->now && S_ISDIR(act->now->mode) ? AT_REMOVEDIR : 0, parent, r;

	if (!act->now || act->failed || (act->then && same_kind(act->now, act->then)))
		return 0;
	r = enter_to_change(revert, &parent, &name, act->now->path);
	if (!r && unlinkat(parent, name, flags) < 0)
		r = -errno;
	return r == -ENOENT ? 0 : r;
}

static int make_directory(struct revert *revert, struct act *act)
{
	const char *name;
	mode_t mask;
	int parent, r;

	if (!act->then || !S_ISDIR(act->then->mode) || (act->now && same_kind(act->now, act->then)))
		return 0;
	r = enter_to_change(revert, &parent, &name, act->then->path);
	if (r)
		return r;
	mask = umask(0);
	r = mkdirat(parent, name, (act->then->mode & 0777) | S_IRWXU) < 0 ? -errno : 0;
	umask(mask);
	return r;
}

/* ---- names ---- */

static int make_other(int parent, const char *name, const struct file *then)
{
	if (S_ISLNK(then->mode))
		return symlinkat(then->target, parent, name);
	if (S_ISFIFO(then->mode))
		return mknodat(parent, name, S_IFIFO | (then->mode & 0777), 0);
	return 0; /* nobody listens to it any more */
}

static bool same_target(const struct act *act)
{
	return act->now && S_ISLNK(act->now->mode) && strcmp(act->now->target, act->then->target) == 0;
}

static int place_other(const struct act *act, int parent, const char *name)
{
	if (act->now && same_kind(act->now, act->then)) {
		if (!S_ISLNK(act->then->mode) || same_target(act))
			return 0;
		if (unlinkat(parent, name, 0) < 0)
			return -errno;
	}
	return make_other(parent, name, act->then) < 0 ? -errno : 0;
}

static int place_name(struct revert *revert, struct act *act)
{
	const char *name;
	char temporary[48];
	int parent, r;

	if (!act->then || act->failed || S_ISDIR(act->then->mode) || (S_ISREG(act->then->mode) && !act->temporary))
		return 0;
	r = enter_to_change(revert, &parent, &name, act->then->path);
	if (r)
		return r;
	if (!S_ISREG(act->then->mode))
		return place_other(act, parent, name);
	temporary_name(temporary, revert, act->temporary);
	if (renameat(revert->reach.root, temporary, parent, name) < 0)
		return -errno;
	(void)unlinkat(revert->reach.root, temporary, 0); /* if both are one file, rename does nothing */
	return 0;
}

/* Returns 1 if there is more, 0 or -errno. */
static int place_content(struct revert *revert, struct act *act)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;
	int64_t at = 0;

	if (!act->then || act->failed || !S_ISREG(act->then->mode) || !act->in_place)
		return 0;
	if (act->lost || !needs_content(act)) {
		if (act->then->size > 0)
			return 0;
	}
	fd = open_in_place(revert, act->then);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (act->then->size > 0)
		at = put_content(fd, act->then->content, act->size);
	if (at < 0)
		return (int)at;
	act->size = (uint64_t)at;
	if (act->size < act->then->size)
		return 1;
	return (uint64_t)status.st_size != act->then->size && ftruncate(fd, (off_t)act->then->size) < 0 ? -errno
													: 0;
}

/* ---- modes and times ---- */

/* The mode comes last: it may forbid the rest. */
static int look_like(int parent, const char *name, const struct file *then, uint64_t inode)
{
	const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, then->modified};
	struct stat status;

	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if ((status.st_mode & S_IFMT) != (then->mode & S_IFMT) || (inode && status.st_ino != inode))
		return -ELOOP;
	if ((status.st_mtim.tv_sec != times[1].tv_sec || status.st_mtim.tv_nsec != times[1].tv_nsec) &&
	    utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(then->mode) || (status.st_mode & 07777) == (then->mode & 07777))
		return 0;
	return fchmodat(parent, name, then->mode & 07777, 0) < 0 ? -errno : 0;
}

/* @inode: which it must have, or 0. */
static int look(struct revert *revert, const struct file *then, uint64_t inode)
{
	const char *name;
	int parent, r = enter(revert, &parent, &name, then->path);

	return r ? r : look_like(parent, then->path[0] ? name : ".", then, inode);
}

static int act_look(struct revert *revert, struct act *act)
{
	if (!act->then || act->failed || S_ISDIR(act->then->mode))
		return 0;
	return look(revert, act->then, act->inode);
}

/* Those that lie deeper first: what is done in a directory changes its time, and its mode may forbid it. One that
 * is to be entered for that is opened up, and comes later. */
static void look_of_directories(struct revert *revert)
{
	for (size_t i = 0; i < revert->n; i++)
		if (revert->acts[i].then && S_ISDIR(revert->acts[i].then->mode) && !revert->acts[i].failed)
			touch(revert, revert->acts[i].then->path);
	for (size_t i = revert->target->n; i > 0; i--) {
		const struct file *then = revert->target->files[i - 1];
		int r = revert->touched[i - 1] && S_ISDIR(then->mode) ? look(revert, then, 0) : 0;

		if (r)
			fail(revert, then->path, strerror(-r));
	}
}

/* Those that should be there have their modes, or could not get them. */
static void shut(struct revert *revert)
{
	int r;

	for (struct reach_opened *it = revert->reach.opened; it; it = it->next) {
		const struct file *then = manifest_find(revert->target, it->path);

		if (then && S_ISDIR(then->mode) && !revert->refused)
			it->mode = then->mode & 07777;
	}
	r = reach_shut(&revert->reach);
	if (r)
		fail(revert, "", strerror(-r));
}

/* ---- going on ---- */

static int (*const phases[_PHASE_N])(struct revert *revert, struct act *act) = {
	[PHASE_MAKE] = make,	    [PHASE_REMOVE] = remove_one,      [PHASE_DIRECTORIES] = make_directory,
	[PHASE_NAMES] = place_name, [PHASE_CONTENTS] = place_content, [PHASE_LOOKS] = act_look,
};

static void phase_end(struct revert *revert)
{
	revert->at = 0;
	if (revert->phase == PHASE_MAKE)
		for (size_t i = 0; i < revert->n; i++)
			revert->acts[i].size = 0;
	if (revert->phase == PHASE_LOOKS) {
		look_of_directories(revert);
		shut(revert);
	}
	revert->phase++;
}

/* Nothing has happened. */
static void withdraw(struct revert *revert, int r)
{
	revert->refused = r;
	fd_closep(&revert->made);
	take_back(revert);
	if (revert->now->n > 0 && !revert->now->files[0]->path[0])
		(void)futimens(revert->reach.root,
			       (const struct timespec[]){{.tv_nsec = UTIME_OMIT}, revert->now->files[0]->modified});
	shut(revert);
	revert->phase = _PHASE_N;
}

static void refuse(struct revert *revert, const struct act *act, int r)
{
	fail(revert, act_path(act), strerror(-r));
	withdraw(revert, r);
}

int revert_step(struct revert *revert)
{
	uint64_t spent = 0;

	while (revert->phase < _PHASE_N && spent < STEP) {
		bool backwards = revert->phase == PHASE_REMOVE;
		struct act *act;
		int r;

		if (revert->at == revert->n) {
			phase_end(revert);
			continue;
		}
		act = &revert->acts[backwards ? revert->n - 1 - revert->at : revert->at];
		r = phases[revert->phase](revert, act);
		spent += ACT_COST + (act->then ? MIN(act->then->size, STEP) : 0);
		if (r == 1)
			continue;
		if (r < 0 && revert->phase == PHASE_MAKE) {
			refuse(revert, act, r);
			return 0;
		}
		if (r < 0)
			act_fail(revert, act, strerror(-r));
		revert->at++;
	}
	return revert->phase < _PHASE_N;
}

/* Whether something is left to do for it, but for modes and times. */
static bool is_unfinished(const struct revert *revert, size_t i)
{
	const struct act *act = &revert->acts[i];
	bool reached = revert->phase == PHASE_REMOVE ? i + revert->at >= revert->n : i < revert->at;

	if (act->failed)
		return false;
	if (!act->then)
		return revert->phase == PHASE_REMOVE && !reached;
	if (S_ISDIR(act->then->mode) && act->now && same_kind(act->now, act->then))
		return false;
	return revert->phase < PHASE_CONTENTS || (revert->phase == PHASE_CONTENTS && act->in_place && !reached);
}

void revert_give_up(struct revert *revert, const char *why)
{
	char temporary[48];

	if (revert->phase == PHASE_MAKE) {
		snprintf(revert->why, sizeof(revert->why), "%s", why);
		withdraw(revert, -ECANCELED);
		return;
	}
	for (size_t i = 0; revert->phase < PHASE_LOOKS && i < revert->n; i++) {
		struct act *act = &revert->acts[i];

		if (!is_unfinished(revert, i))
			continue;
		temporary_name(temporary, revert, act->temporary);
		if (act->temporary)
			(void)unlinkat(revert->reach.root, temporary, 0);
		act_fail(revert, act, why);
	}
	if (revert->phase < PHASE_LOOKS) {
		revert->phase = PHASE_LOOKS;
		revert->at = 0;
	}
}

/* ---- what came of it ---- */

/* It has the content of @then, if it was brought back. */
static struct file *seen(struct reach *reach, const struct file *then, bool failed)
{
	const char *slash = strrchr(then->path, '/'), *name;
	char above[PATH_MAX];
	struct file *file;
	int parent;

	if (!then->path[0])
		return file_look(reach->root, "", "");
	if (reach_parent(reach, &parent, &name, then->path))
		return NULL;
	snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - then->path) : 0, then->path);
	file = file_look(parent, above, name);
	if (!file)
		return NULL;
	if (then->target && S_ISLNK(file->mode))
		file->target = strdup(then->target);
	if (failed || !S_ISREG(file->mode))
		return file;
	if (file->size == then->size)
		file->content = blob_use(then->content);
	file->changing = then->changing;
	file->unkept = then->unkept;
	return file;
}

static bool act_of(const struct revert *revert, size_t *at, const struct file *then)
{
	while (*at < revert->n && (!revert->acts[*at].then || strcmp(revert->acts[*at].then->path, then->path) < 0))
		++*at;
	return *at < revert->n && revert->acts[*at].then == then;
}

/* What is there of @then, without another look: nothing was done to it. */
static struct file *known(const struct revert *revert, size_t *at, struct file *then)
{
	const struct manifest *now = revert->now;

	while (*at < now->n && now->files[*at] != then && strcmp(now->files[*at]->path, then->path) < 0)
		++*at;
	return *at < now->n && strcmp(now->files[*at]->path, then->path) == 0 ? now->files[*at] : then;
}

struct manifest *revert_result(struct revert *revert)
{
	struct manifest *result;
	size_t at = 0, there = 0;
	struct reach reach;

	if (revert->n == 0 && revert->now == revert->target)
		return manifest_use(revert->now);
	result = manifest_new();
	reach_init(&reach, revert->reach.root, 0);

	for (size_t i = 0; result && i < revert->target->n; i++) {
		struct file *then = revert->target->files[i], *file;
		bool acted = act_of(revert, &at, then), failed = acted && revert->acts[at].failed;

		if (acted || revert->touched[i])
			file = seen(&reach, then, failed);
		else
			file = file_use(known(revert, &there, then));
		/* It is there, where nobody may look; or it has been written to since, which the next look sees. */
		if (!failed && (!file || (S_ISREG(file->mode) && file->size != then->size))) {
			file_drop(revert->store, file);
			file = file_use(then);
		}
		result->changing |= file && file->changing;
		if (file && manifest_add(revert->store, result, file))
			result = manifest_drop(revert->store, result);
	}
	(void)reach_shut(&reach);
	return result;
}

bool revert_is_quiet(const struct revert *revert, size_t i)
{
	const struct act *act = &revert->acts[i];

	if (act->failed)
		return false;
	if (act->now && act->then && S_ISDIR(act->now->mode) && S_ISDIR(act->then->mode))
		return true;
	return act->now && act->then && act->then->changing && act->now->content == act->then->content;
}

const char *revert_done(const struct revert *revert, size_t i, enum revert_change *change)
{
	const struct act *act = &revert->acts[i];

	if (i >= revert->n)
		return NULL;
	*change = act->failed  ? REVERT_FAILED
		  : !act->then ? REVERT_REMOVED
		  : !act->now  ? REVERT_MADE
			       : REVERT_CHANGED;
	return (act->then ? act->then : act->now)->path;
}
