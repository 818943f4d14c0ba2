/* A file belongs to a cell if its inode changed since the cell began: the kernel sets the time of that change,
 * and nobody else can. So no file is remembered from one cell to the next, and it does not matter who wrote: C,
 * a child process or another interpreter. The price is a look at every file. It is not paid if the cell took
 * next to no time and Python has seen nothing that may write; nor, if there are many files, when the witness says
 * that nothing has happened to any. And it is bounded, in time and in number. Whatever the look cannot reach counts
 * as changed, and so does everything if the clock was set back during the cell: then the warden compares, with its
 * rights and without a clock.
 *
 * The kernel's file times advance in ticks of a few milliseconds, or finer. A file that the first of two cells
 * in one tick wrote would belong to both. So if the first has written, the second waits for the next tick. A
 * cell begins by the coarse clock, and no file time is later than that. */
#include "artifacts.h"

#include "positions.h"

#include "files/manifest.h"
#include "files/walk.h"
#include "files/witness.h"
#include "proto/clock.h"
#include "proto/message.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A cell that took less time can have written only what Python has seen. */
#define SHORT_NS 100000
/* The limits of one look: files told, files looked at, nanoseconds. */
#define TOLD_MAX 256
#define SEEN_MAX 100000
#define LOOK_NS 250000000

/* So many maps are known. */
#define MAPS_MAX 64
/* To look at so many files takes longer than to ask whether there is anything to see. */
#define MANY 1000

static struct {
	char home[PATH_MAX];
	bool timeless;		       /* its file system does not tell of all that is written through maps */
	struct timespec began, newest; /* in file time: when the cell began; the newest change that was told */
	uint64_t began_ns;
	int64_t clock; /* the least that the wall clock can have been ahead of the monotonic one then */
	struct wire_list files, mapped;
	bool maps;	/* there were maps at the end of the last cell */
	unsigned seen;	/* files, at the last look */
	uint32_t count; /* the witness's, at the last question; 0: nobody knows */
	unsigned held;	/* descriptors by which the witness does not see all that is written, at the last look */
} artifacts;

struct look {
	unsigned seen;
	uint64_t until;
	bool more, changed;
	bool blind; /* something could not be looked at */
};

static bool before(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

static struct timespec time_of(struct statx_timestamp stamp)
{
	return (struct timespec){.tv_sec = stamp.tv_sec, .tv_nsec = stamp.tv_nsec};
}

/* Whether this process has ever had a child. Those that nobody has to wait for are not counted. */
static bool had_children(void)
{
	struct sigaction action;
	struct rusage usage;

	return getrusage(RUSAGE_CHILDREN, &usage) < 0 || usage.ru_minflt > 0 || usage.ru_majflt > 0 ||
	       sigaction(SIGCHLD, NULL, &action) < 0 || action.sa_handler == SIG_IGN ||
	       (action.sa_flags & SA_NOCLDWAIT);
}

/* Whether any file may have changed since the last question. */
static bool may_differ(void)
{
	uint32_t before = artifacts.count;

	artifacts.count = artifacts.seen < MANY ? 0 : witness_ask();
	return artifacts.count == 0 || artifacts.count != before;
}

void artifacts_of_others(void)
{
	clock_gettime(CLOCK_REALTIME, &artifacts.newest);
	(void)may_differ();
}

void artifacts_home(const char *workspace)
{
	_cleanup_(fd_closep) int home = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (artifacts.home[0]) { /* it is a copy */
		witness_leave();
		artifacts_of_others();
	}
	snprintf(artifacts.home, sizeof(artifacts.home), "%s", workspace);
	artifacts.timeless = files_are_timeless(home);
}

const char *artifacts_root(void)
{
	return artifacts.home;
}

bool artifacts_too_soon(struct timespec newest, struct timespec now)
{
	struct timespec set_back = {.tv_sec = now.tv_sec + 1, .tv_nsec = now.tv_nsec};

	return newest.tv_sec && !before(newest, now) && before(newest, set_back);
}

/* Both clocks are slewed alike, so only a step changes the difference. */
static int64_t wall_ns(void)
{
	return (int64_t)clock_ns(CLOCK_REALTIME);
}

/* Whether file times of this cell may be older than its beginning. */
static bool clock_was_set_back(void)
{
	int64_t earliest = (int64_t)clock_ns(CLOCK_MONOTONIC);

	return wall_ns() - earliest < artifacts.clock;
}

void artifacts_begin(void)
{
	static const struct timespec moment = {.tv_nsec = 500000};

	while (clock_gettime(CLOCK_REALTIME_COARSE, &artifacts.began) == 0 &&
	       artifacts_too_soon(artifacts.newest, artifacts.began))
		nanosleep(&moment, NULL);
	artifacts.clock = wall_ns();
	artifacts.began_ns = clock_ns(CLOCK_MONOTONIC);
	artifacts.clock -= (int64_t)artifacts.began_ns;
}

/* ---- telling ---- */

static const char *type_of(const char *name)
{
	static const struct {
		const char *suffix, *type;
	} types[] = {
		{"csv", "text/csv"},
		{"tsv", "text/tab-separated-values"},
		{"txt", "text/plain"},
		{"log", "text/plain"},
		{"md", "text/markdown"},
		{"py", "text/x-python"},
		{"html", "text/html"},
		{"htm", "text/html"},
		{"css", "text/css"},
		{"js", "text/javascript"},
		{"json", "application/json"},
		{"jsonl", "application/jsonl"},
		{"ipynb", "application/x-ipynb+json"},
		{"xml", "application/xml"},
		{"yaml", "application/yaml"},
		{"yml", "application/yaml"},
		{"toml", "application/toml"},
		{"pdf", "application/pdf"},
		{"png", "image/png"},
		{"jpg", "image/jpeg"},
		{"jpeg", "image/jpeg"},
		{"gif", "image/gif"},
		{"svg", "image/svg+xml"},
		{"webp", "image/webp"},
		{"tif", "image/tiff"},
		{"tiff", "image/tiff"},
		{"bmp", "image/bmp"},
		{"wav", "audio/wav"},
		{"mp3", "audio/mpeg"},
		{"mp4", "video/mp4"},
		{"zip", "application/zip"},
		{"gz", "application/gzip"},
		{"tar", "application/x-tar"},
		{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
		{"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
		{"parquet", "application/vnd.apache.parquet"},
		{"sqlite", "application/vnd.sqlite3"},
		{"db", "application/vnd.sqlite3"},
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(types); i++)
		if (strcasecmp(dot + 1, types[i].suffix) == 0)
			return types[i].type;
	return "application/octet-stream";
}

static void tell(struct look *look, const char *directory, const char *name, const struct statx *status)
{
	bool is_new = (status->stx_mask & STATX_BTIME) && !before(time_of(status->stx_btime), artifacts.began);
	char path[PATH_MAX];
	struct artifact artifact = {
		.size = status->stx_size,
		.type = bytes_of(type_of(name)),
		.change = bytes_of(is_new ? "created" : "modified"),
	};
	int size = snprintf(path, sizeof(path), "%s%s%s", directory, directory[0] ? "/" : "", name);

	artifact.path = (struct bytes){.data = path, .size = (size_t)size};
	if (artifacts.files.n == TOLD_MAX || size >= (int)sizeof(path) ||
	    wire_list_add(&artifacts.files, &artifact_schema, &artifact))
		look->more = true;
}

/* ---- looking ---- */

/* A removed one was removed during the look. */
static int cannot_look(struct look *look, int r)
{
	look->changed |= r == -ENOENT;
	look->blind |= !walk_has_gone(r);
	return 0;
}

/* Whether it has changed in this cell. */
static bool is_changed(struct look *look, struct statx_timestamp stamp)
{
	struct timespec changed = time_of(stamp);

	if (before(changed, artifacts.began))
		return false;
	if (before(artifacts.newest, changed))
		artifacts.newest = changed;
	look->changed = true;
	return true;
}

/* Somebody has put something into it, or taken something out. */
static int look_at_directory(struct walk *walk)
{
	struct statx status;

	if (statx(walk->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_CTIME, &status) == 0)
		(void)is_changed(walk->userdata, status.stx_ctime);
	return 0;
}

static int directory_lost(struct walk *walk, const char *path, int r)
{
	return cannot_look(walk->userdata, r);
}

static int look_at(struct walk *walk, const char *name)
{
	struct look *look = walk->userdata;
	struct statx status;

	if (++look->seen >= SEEN_MAX || (look->seen % 256 == 0 && clock_ns(CLOCK_MONOTONIC) > look->until))
		return -ETIME;
	if (statx(walk->fd, name, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC,
		  STATX_TYPE | STATX_SIZE | STATX_CTIME | STATX_BTIME, &status) < 0)
		return cannot_look(look, -errno);
	if (is_changed(look, status.stx_ctime) && !walk->tag && S_ISREG(status.stx_mode))
		tell(look, walk->path, name, &status);
	return WALK_ON;
}

/* Files that Python keeps for itself. */
static bool is_quiet(const char *name)
{
	return strcmp(name, "__pycache__") == 0;
}

static int look_at_entry(struct walk *walk, const char *name, unsigned char type)
{
	if (type != DT_DIR)
		return look_at(walk, name);
	walk->tag_below = walk->tag || is_quiet(name); /* its files are not told */
	return walk_is_branches(walk, name) ? WALK_ON : WALK_INTO;
}

/* ---- maps ---- */

/* Its memory stays. */
static void list_empty(struct wire_list *list)
{
	list->buffer.size = list->n = 0;
	list->r = 0;
}

/* The inode of a line of /proc/self/maps, if that is a shared map for writing of a file in the workspace; or 0. */
static uint64_t mapped_inode(const char *line)
{
	size_t size = strlen(artifacts.home);
	unsigned long long inode = 0;
	char modes[5] = "";
	const char *path;

	if (sscanf(line, "%*s %4s %*s %*s %llu", modes, &inode) != 2 || modes[1] != 'w' || modes[3] != 's')
		return 0;
	path = strchr(line, '/');
	return path && strncmp(path, artifacts.home, size) == 0 && path[size] == '/' ? inode : 0;
}

static uint32_t maps_find(uint64_t inodes[static MAPS_MAX])
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128];
	uint32_t n = 0;

	while (file && n < MAPS_MAX && fgets(line, sizeof(line), file)) {
		inodes[n] = mapped_inode(line);
		n += inodes[n] != 0 && (n == 0 || inodes[n] != inodes[n - 1]);
	}
	if (file)
		fclose(file);
	artifacts.maps = n > 0;
	return n;
}

static void maps_list(struct artifacts_found *found)
{
	uint64_t inodes[MAPS_MAX];
	uint32_t n = maps_find(inodes);

	list_empty(&artifacts.mapped);
	for (uint32_t i = 0; i < n; i++)
		(void)wire_list_add_uint(&artifacts.mapped, inodes[i]);
	if (n == 0 || artifacts.mapped.r)
		return;
	found->mapped = wire_list_bytes(&artifacts.mapped);
	found->changed = true; /* nobody knows */
}

/* ---- the end of a cell ---- */

/* Whether the cell may have written by a descriptor that it had before: to a file whose name is not there any more,
 * but another one is, or through a map, which may be gone by now. */
static bool is_held_changed(void)
{
	uint64_t inodes[MAPS_MAX];
	bool changed;

	if (artifacts.held == 0)
		return false;
	return positions_held(artifacts.began, &changed) != artifacts.held || changed || maps_find(inodes) > 0;
}

/* The witness sees no write through a map. Its own maps this process knows; a child may have others. */
static bool is_look_due(void)
{
	bool differs = may_differ();
	siginfo_t child;

	return differs || clock_was_set_back() || artifacts.maps || is_held_changed() ||
	       waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void look_all(struct look *look)
{
	static const struct walk_visitor visitor = {look_at_directory, look_at_entry, directory_lost};
	int home = open(artifacts.home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct walk walk;

	if (home < 0)
		(void)cannot_look(look, -errno);
	look->more |= walk_begin(&walk, home, 0, &visitor, look) || walk_step(&walk, UINT_MAX) || look->blind;
	walk_end(&walk);
	fd_close(home);
}

static void look_again(struct look *look)
{
	bool changed;

	look_all(look);
	look->more |= clock_was_set_back();
	artifacts.seen = look->seen;
	artifacts.held = look->seen < MANY ? 0 : positions_held(artifacts.began, &changed);
}

struct artifacts_found artifacts_end(bool changing)
{
	struct look look = {.until = clock_ns(CLOCK_MONOTONIC) + LOOK_NS};
	struct artifacts_found found = {.more = false};

	list_empty(&artifacts.files);
	if (!artifacts.home[0])
		return found;
	found.strangers = had_children() && witness_strangers();
	if ((changing || found.strangers || clock_ns(CLOCK_MONOTONIC) - artifacts.began_ns >= SHORT_NS) &&
	    (is_look_due() || found.strangers))
		look_again(&look);
	found.more = look.more;
	found.changed = look.changed || look.more;
	if (look.more) /* there may be newer changes */
		clock_gettime(CLOCK_REALTIME, &artifacts.newest);
	if (artifacts.files.n > 0)
		found.files = wire_list_bytes(&artifacts.files);
	if (found.changed || artifacts.maps || look.seen >= (artifacts.timeless ? 1 : MANY))
		maps_list(&found);
	return found;
}
