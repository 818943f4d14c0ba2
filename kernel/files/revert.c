/* Bringing back. For each file that is not what it was there is an act. A file that is still there keeps its inode,
 * so descriptors and maps of it go on; its content is written in place, and only where it differs. One that has
 * only another name gets its own back. The phases: new files are made, and grown ones grow; what should not be
 * there is removed; directories are made; files get their names, contents, modes and times. Up to the end of the
 * first everything can be taken back. */
#include "revert.h"

#include "proto/beneath.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>

#define PIECE (256U << 10)
#define STEP (4ULL << 20)
#define ACT_COST (16U << 10)
#define TEMPORARY ".lair-back-%08x-%u"

struct act {
	struct file *now, *then; /* either may be NULL */
	bool in_place;		 /* the file that is there is the one that was */
	bool lost;		 /* its content was not kept */
	bool failed;
	bool done;	      /* a directory that is there */
	uint64_t grown, size; /* in place: it had that size; a new one: so much of it is written */
	unsigned temporary;   /* the number of its temporary name; 0: none */
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
	act->lost = then && S_ISREG(then->mode) && then->size > 0 && !then->content;
	revert->n++;
}

int revert_begin(struct revert *revert, struct store *store, int root, struct manifest *now,
		 struct manifest *target)
{
	unsigned salt;
	size_t n = 0;

	*revert = (struct revert){.store = store, .root = root};
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
	free(revert->acts);
	free(revert->touched);
	free(revert->inodes);
	revert->now = manifest_drop(revert->store, revert->now);
	revert->target = manifest_drop(revert->store, revert->target);
}

static void act_fail(struct revert *revert, struct act *act, const char *why)
{
	const char *path = act->then ? act->then->path : act->now->path;

	act->failed = true;
	if (!revert->why[0])
		snprintf(revert->why, sizeof(revert->why), "%.120s: %s", path[0] ? path : ".", why);
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

static void open_up_one(struct revert *revert, const char *directory)
{
	const char *name = directory[0] ? directory : ".";
	struct stat status;

	if (fstatat(revert->root, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(status.st_mode) ||
	    (status.st_mode & S_IRWXU) == S_IRWXU)
		return;
	if (fchmodat(revert->root, name, (status.st_mode & 07777) | S_IRWXU, 0) == 0)
		touch(revert, directory);
}

/* The directories above @path, to which or through which their owner may not go. They get their modes back at the
 * end. */
static void open_up(struct revert *revert, const char *path)
{
	char above[PATH_MAX];

	open_up_one(revert, "");
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		open_up_one(revert, above);
	}
}

/* The directory in which @path lies; one may be written to that may not. */
static int enter(struct revert *revert, int *fdp, const char **namep, const char *path)
{
	int r = parent_open(fdp, namep, revert->root, path);
	struct stat status;

	if (!r && fstat(*fdp, &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU)
		open_up(revert, path);
	if (r == -EACCES) {
		open_up(revert, path);
		r = parent_open(fdp, namep, revert->root, path);
	}
	touch_above(revert, path);
	return r;
}

static void temporary_name(char out[static 48], const struct revert *revert, unsigned number)
{
	snprintf(out, 48, TEMPORARY, revert->serial, number);
}

/* ---- contents ---- */

static int write_all(int fd, const char *data, size_t size, uint64_t at)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pwrite(fd, data + done, size - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	return 0;
}

static bool is_empty(const char *data, size_t size)
{
	return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

/* Write a piece of @content at @at, unless it is there. In a @fresh file what is empty stays a hole. Returns its
 * size or -errno. */
static ssize_t put_piece(int fd, const struct blob *content, uint64_t at, bool fresh)
{
	static char then[PIECE], now[PIECE];
	ssize_t n = blob_read(content, then, PIECE, at);
	int r;

	if (n <= 0)
		return n < 0 ? n : -EIO;
	if (fresh ? is_empty(then, (size_t)n)
		  : pread(fd, now, (size_t)n, (off_t)at) == n && memcmp(now, then, (size_t)n) == 0)
		return n;
	r = write_all(fd, then, (size_t)n, at);
	return r ? r : n;
}

/* Returns how far it came, or -errno. */
static int64_t put_content(int fd, const struct blob *content, uint64_t at, bool fresh)
{
	uint64_t until = at + STEP;

	while (at < content->size && at < until) {
		ssize_t n = fresh ? blob_put(content, fd, at, until - at) : 0;

		if (n == 0)
			n = put_piece(fd, content, at, fresh);

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

/* One that was made already, of which this is another name. */
static const struct act *made_of(const struct revert *revert, const struct act *act)
{
	for (const struct act *other = revert->acts; act->then->links > 1 && other < act; other++)
		if (other->then && S_ISREG(other->then->mode) && other->temporary && !other->failed &&
		    file_same(other->then, act->then))
			return other;
	return NULL;
}

static int link_from(struct revert *revert, int parent, const char *name, const char *temporary)
{
	return linkat(parent, name, revert->root, temporary, 0) < 0 ? -errno : 0;
}

static int link_live(struct revert *revert, const struct file *live, const char *temporary)
{
	_cleanup_(fd_closep) int parent = -1;
	const char *name;
	int r = enter(revert, &parent, &name, live->path);

	return r ? r : link_from(revert, parent, name, temporary);
}

/* Returns 1 if there is more to write, 0 or -errno. */
static int make_more(struct revert *revert, struct act *act)
{
	_cleanup_(fd_closep) int fd = -1;
	char temporary[48];
	int64_t at;

	temporary_name(temporary, revert, act->temporary);
	fd = openat(revert->root, temporary, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	at = put_content(fd, act->then->content, act->size, true);
	if (at < 0)
		return (int)at;
	act->size = (uint64_t)at;
	if (act->size < act->then->size)
		return 1;
	return ftruncate(fd, (off_t)act->then->size) < 0 ? -errno : 0;
}

static int make_new(struct revert *revert, struct act *act, const char *temporary)
{
	mode_t mask = umask(0);
	int fd = openat(revert->root, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			(act->then->mode & 0777) | S_IWUSR);
	int r = fd < 0 ? -errno : 0;

	umask(mask);
	fd_close(fd);
	return r || act->then->size == 0 ? r : make_more(revert, act);
}

static int make_begin(struct revert *revert, struct act *act)
{
	const struct file *live = live_of(revert, act->then);
	const struct act *made = live ? NULL : made_of(revert, act);
	char temporary[48], other[48];

	act->temporary = (unsigned)(act - revert->acts) + 1;
	touch(revert, "");
	temporary_name(temporary, revert, act->temporary);
	if (live && link_live(revert, live, temporary) == 0) {
		act->in_place = true; /* the content, too */
		return 0;
	}
	if (made) {
		temporary_name(other, revert, made->temporary);
		if (link_from(revert, revert->root, other, temporary) == 0)
			return 0;
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
	_cleanup_(fd_closep) int parent = -1;
	const char *name;
	int fd, r = enter(revert, &parent, &name, file->path);

	if (r)
		return r;
	fd = openat(parent, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && fchmodat(parent, name, (file->mode & 07777) | S_IRUSR | S_IWUSR, 0) == 0)
		fd = openat(parent, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool needs_content(const struct act *act)
{
	return act->then && S_ISREG(act->then->mode) && act->then->size > 0 && !act->lost &&
	       (act->now ? act->now->content != act->then->content || act->now->changing || act->then->changing ||
				   act->temporary
			 : act->temporary && act->in_place);
}

/* What it lacks is written behind its end, and could be cut off again. */
static int grow(struct revert *revert, struct act *act)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat status;
	int64_t at;

	fd = open_in_place(revert, act->now);
	if (fd == -EACCES) {
		act->in_place = false;
		return make_begin(revert, act);
	}
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return -ELOOP;
	if (!act->grown) {
		act->grown = (uint64_t)status.st_size + 1;
		act->size = (uint64_t)status.st_size;
	}
	if (act->size >= act->then->size)
		return 0;
	at = put_content(fd, act->then->content, act->size, false);
	if (at < 0)
		return (int)at;
	act->size = (uint64_t)at;
	return act->size < act->then->size;
}

static int make(struct revert *revert, struct act *act)
{
	if (!act->then || act->failed || !S_ISREG(act->then->mode))
		return 0;
	if (act->temporary)
		return act->size < act->then->size && !act->in_place ? make_more(revert, act) : 0;
	if (!act->in_place)
		return make_begin(revert, act);
	if (act->lost) {
		act_fail(revert, act, "its content was not kept");
		return 0;
	}
	return needs_content(act) ? grow(revert, act) : 0;
}

static void shrink(struct revert *revert, struct act *act)
{
	const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, act->now->modified};
	_cleanup_(fd_closep) int fd = open_in_place(revert, act->now);

	act->failed = fd < 0 || ftruncate(fd, (off_t)(act->grown - 1)) < 0 || futimens(fd, times) < 0;
}

static void take_back(struct revert *revert)
{
	char temporary[48];

	for (size_t i = 0; i < revert->n; i++) {
		struct act *act = &revert->acts[i];

		temporary_name(temporary, revert, act->temporary);
		if (act->temporary)
			(void)unlinkat(revert->root, temporary, 0);
		else if (act->grown && act->then->size >= act->grown)
			shrink(revert, act);
	}
}

/* ---- removing, and directories ---- */

static int remove_one(struct revert *revert, struct act *act)
{
	_cleanup_(fd_closep) int parent = -1;
	const char *name;
	int flags = act->now && S_ISDIR(act->now->mode) ? AT_REMOVEDIR : 0, r;

	if (!act->now || act->failed || (act->then && same_kind(act->now, act->then)))
		return 0;
	r = enter(revert, &parent, &name, act->now->path);
	if (!r && unlinkat(parent, name, flags) < 0)
		r = -errno;
	return r == -ENOENT ? 0 : r;
}

static int make_directory(struct revert *revert, struct act *act)
{
	_cleanup_(fd_closep) int parent = -1;
	const char *name;
	mode_t mask;
	int r;

	if (!act->then || !S_ISDIR(act->then->mode) || (act->now && same_kind(act->now, act->then)))
		return 0;
	r = enter(revert, &parent, &name, act->then->path);
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

static int place_other(struct revert *revert, const struct act *act, int parent, const char *name)
{
	if (act->now && same_kind(act->now, act->then)) {
		if (!S_ISLNK(act->then->mode) || same_target(act))
			return 0;
		if (unlinkat(parent, name, 0) < 0)
			return -errno;
	}
	(void)revert;
	return make_other(parent, name, act->then) < 0 ? -errno : 0;
}

static int place_name(struct revert *revert, struct act *act)
{
	_cleanup_(fd_closep) int parent = -1;
	const char *name;
	char temporary[48];
	int r;

	if (!act->then || act->failed || S_ISDIR(act->then->mode) || (S_ISREG(act->then->mode) && !act->temporary))
		return 0;
	r = enter(revert, &parent, &name, act->then->path);
	if (r)
		return r;
	if (!S_ISREG(act->then->mode))
		return place_other(revert, act, parent, name);
	temporary_name(temporary, revert, act->temporary);
	if (renameat(revert->root, temporary, parent, name) < 0)
		return -errno;
	(void)unlinkat(revert->root, temporary, 0); /* if both are one file, rename does nothing */
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
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return -ELOOP;
	if (act->then->size > 0)
		at = put_content(fd, act->then->content, act->size, false);
	if (at < 0)
		return (int)at;
	act->size = (uint64_t)at;
	if (act->size < act->then->size)
		return 1;
	return (uint64_t)status.st_size != act->then->size && ftruncate(fd, (off_t)act->then->size) < 0 ? -errno
													: 0;
}

/* ---- modes and times ---- */

static int look_like(int parent, const char *name, const struct file *then)
{
	const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, then->modified};
	struct stat status;

	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if ((status.st_mode & S_IFMT) != (then->mode & S_IFMT))
		return -ELOOP;
	if (!S_ISLNK(then->mode) && (status.st_mode & 07777) != (then->mode & 07777) &&
	    fchmodat(parent, name, then->mode & 07777, 0) < 0)
		return -errno;
	if (status.st_mtim.tv_sec == times[1].tv_sec && status.st_mtim.tv_nsec == times[1].tv_nsec)
		return 0;
	return utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int look(struct revert *revert, const struct file *then)
{
	_cleanup_(fd_closep) int parent = -1;
	const char *name;
	int r;

	if (!then->path[0])
		return look_like(revert->root, ".", then);
	r = parent_open(&parent, &name, revert->root, then->path);
	return r ? r : look_like(parent, name, then);
}

static int act_look(struct revert *revert, struct act *act)
{
	if (!act->then || act->failed || S_ISDIR(act->then->mode))
		return 0;
	return look(revert, act->then);
}

/* Those that lie deeper first: what is done in a directory changes its time, and its mode may forbid it. */
static void look_of_directories(struct revert *revert)
{
	for (size_t i = 0; i < revert->n; i++) {
		const struct act *act = &revert->acts[i];
		size_t at = act->then ? manifest_place(revert->target, act->then->path) : revert->target->n;

		if (at < revert->target->n && S_ISDIR(act->then->mode))
			revert->touched[at] = true;
	}
	for (size_t i = revert->target->n; i > 0; i--)
		if (revert->touched[i - 1] && S_ISDIR(revert->target->files[i - 1]->mode))
			(void)look(revert, revert->target->files[i - 1]);
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
	if (revert->phase == PHASE_LOOKS)
		look_of_directories(revert);
	revert->phase++;
}

/* Nothing has happened. */
static void withdraw(struct revert *revert, int r)
{
	revert->refused = r;
	take_back(revert);
	if (revert->now->n > 0 && !revert->now->files[0]->path[0])
		(void)look(revert, revert->now->files[0]); /* names came and went there */
	revert->phase = _PHASE_N;
}

static void refuse(struct revert *revert, const struct act *act, int r)
{
	snprintf(revert->why, sizeof(revert->why), "%.120s: %s", act->then->path, strerror(-r));
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
			(void)unlinkat(revert->root, temporary, 0);
		act_fail(revert, act, why);
	}
	if (revert->phase < PHASE_LOOKS) {
		revert->phase = PHASE_LOOKS;
		revert->at = 0;
	}
}

/* ---- what came of it ---- */

/* It has the content of @then, if it was brought back. */
static struct file *seen(struct revert *revert, const struct file *then, bool failed)
{
	_cleanup_(fd_closep) int parent = -1;
	const char *slash = strrchr(then->path, '/'), *name;
	char above[PATH_MAX];
	struct file *file;

	if (!then->path[0])
		return file_look(revert->root, "", "");
	if (parent_open(&parent, &name, revert->root, then->path))
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

	if (revert->n == 0 && revert->now == revert->target)
		return manifest_use(revert->now);
	result = manifest_new();

	for (size_t i = 0; result && i < revert->target->n; i++) {
		struct file *then = revert->target->files[i], *file;
		bool acted = act_of(revert, &at, then), failed = acted && revert->acts[at].failed;

		if (acted || revert->touched[i])
			file = seen(revert, then, failed);
		else
			file = file_use(known(revert, &there, then));
		if (!file && !failed) /* it is there, where nobody may look */
			file = file_use(then);
		result->changing |= file && file->changing;
		if (file && manifest_add(revert->store, result, file))
			result = manifest_drop(revert->store, result);
	}
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
