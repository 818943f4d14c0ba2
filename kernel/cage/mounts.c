/* The file system of a session: an empty root of our own, into which only the places are mounted, under their
 * paths on the host. All sources are opened while the host's tree is still the root, so nothing that is mounted
 * later can replace one. Then the roots are exchanged, so every later path means the session's own tree. The
 * host's tree is detached last. */
#include "steps.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define RECURSIVE 0x8000 /* AT_RECURSIVE */
#define STAGE "/tmp"	 /* a directory that every host has; it is covered for a moment, in this namespace alone */
#define INODES_MAX 65536
#define TERMINALS_MAX "16" /* all sessions of a host share some 3000 */

/* What is mounted at a place. For a directory, @fd is the directory and @name is ".". For a file, @fd is its parent
 * directory and @name its name there. */
struct source {
	int fd;
	const char *name;
	bool directory;
};

/* ---- attributes ---- */

/* Kernels before 5.12 lack mount_setattr. There, each mount at or below @path is remounted. It must keep the flags
 * that it has, because a user namespace cannot remove them. */
static unsigned long flags_of(const char *path)
{
	static const struct {
		long has;
		unsigned long keep;
	} flags[] = {
		{ST_RDONLY, MS_RDONLY},	    {ST_NOSUID, MS_NOSUID},   {ST_NODEV, MS_NODEV},
		{ST_NOEXEC, MS_NOEXEC},	    {ST_NOATIME, MS_NOATIME}, {ST_NODIRATIME, MS_NODIRATIME},
		{ST_RELATIME, MS_RELATIME},
	};
	unsigned long result = 0;
	struct statvfs meta;

	if (statvfs(path, &meta) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if ((long)meta.f_flag & flags[i].has)
			result |= flags[i].keep;
	if (!(result & (MS_NOATIME | MS_RELATIME)))
		result |= MS_STRICTATIME;
	return result;
}

static int remount(const char *path, unsigned long flags)
{
	flags |= flags_of(path) | MS_REMOUNT | MS_BIND;
	return mount(NULL, path, NULL, flags, NULL) < 0 ? -errno : 0;
}

/* Replaces the octal escapes of mountinfo in place. */
static void unescape(char *path)
{
	char *to = path;

	for (; *path; path++) {
		unsigned code;

		if (*path == '\\' && sscanf(path + 1, "%3o", &code) == 1) {
			*to++ = (char)code;
			path += 3;
		} else {
			*to++ = *path;
		}
	}
	*to = '\0';
}

/* If another mount covers a mount, or this user cannot reach it, the session cannot reach it either. */
static int remount_if_seen(const char *path, unsigned long flags)
{
	int r = remount(path, flags);

	return r == -EINVAL || r == -EACCES || r == -ENOENT ? 0 : r;
}

static int remount_below(const char *path, unsigned long flags, int proc_self)
{
	char line[2 * PATH_MAX], point[PATH_MAX];
	int fd = openat(proc_self, "mountinfo", O_RDONLY | O_CLOEXEC), r;
	FILE *mountinfo = fd < 0 ? NULL : fdopen(fd, "r");

	if (!mountinfo)
		return -errno;
	r = remount(path, flags);
	while (!r && fgets(line, sizeof(line), mountinfo)) {
		if (sscanf(line, "%*d %*d %*s %*s %4095s", point) != 1)
			continue;
		unescape(point);
		if (strcmp(point, path) != 0 && path_within(point, path))
			r = remount_if_seen(point, flags);
	}
	fclose(mountinfo);
	return r;
}

static int protect(const char *path, unsigned long flags, int proc_self)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};

	if (flags & MS_RDONLY)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (syscall(SYS_mount_setattr, AT_FDCWD, path, RECURSIVE, &attr, sizeof(attr)) == 0)
		return 0;
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	return remount_below(path, flags | MS_NOSUID | MS_NODEV, proc_self);
}

/* ---- sources ---- */

static int source_open(struct source *source, const char *path)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');
	struct stat meta;

	if (stat(path, &meta) < 0)
		return -errno;
	source->directory = S_ISDIR(meta.st_mode);
	source->name = ".";
	if (!source->directory) {
		snprintf(parent, sizeof(parent), "%.*s", slash == path ? 1 : (int)(slash - path), path);
		source->name = slash + 1;
		path = parent;
	}
	source->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return source->fd < 0 ? -errno : 0;
}

/* Only directories are pinned. */
static int source_open_place(struct source *source, const struct place *place)
{
	if (!place->pinned)
		return source_open(source, place->text ? place->text : place->path);
	source->directory = true;
	source->name = ".";
	return place_open(&source->fd, place);
}

static int source_mount(const struct source *source, const char *path)
{
	return fchdir(source->fd) < 0 || mount(source->name, path, NULL, MS_BIND | MS_REC, NULL) < 0 ? -errno : 0;
}

/* The device is the host's own. It is mounted read-only, so that a write to the device does not change the times of
 * its file. */
static int device_mount(const struct source *source, const char *path)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC};
	int r = source_mount(source, path);

	if (r || syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &attr, sizeof(attr)) == 0)
		return r;
	return errno == ENOSYS || errno == EPERM ? remount(path, MS_RDONLY | MS_NOSUID | MS_NOEXEC) : -errno;
}

/* ---- making mount points ---- */

/* Places are sorted, so most have the same parent as the place before. */
static int parents_make(const char *path)
{
	static char last[PATH_MAX];
	size_t size = (size_t)(strrchr(path, '/') - path);
	char partial[PATH_MAX];

	if (strlen(last) == size && memcmp(path, last, size) == 0)
		return 0;
	snprintf(last, sizeof(last), "%.*s", (int)size, path);
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(partial, sizeof(partial), "%.*s", (int)(slash - path), path);
		/* A directory that exists already may lie in a read-only place. */
		if (mkdir(partial, 0755) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
			return -errno;
	}
	return 0;
}

static int point_make(const char *path, bool directory)
{
	int fd = -1, r = parents_make(path);

	if (r || strcmp(path, "/") == 0)
		return r;
	if (directory)
		r = mkdir(path, 0755) < 0 ? -errno : 0;
	else
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (!directory && fd < 0)
		r = -errno;
	fd_close(fd);
	return r && access(path, F_OK) == 0 ? 0 : r;
}

static int tmpfs(const char *path, const char *options)
{
	return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0 ? -errno : 0;
}

/* ---- one function for each kind of place ---- */

struct build {
	struct cage *cage;
	struct source *sources; /* one for each place, in the same order */
	struct source scratch;	/* the directory for /tmp, made with /dev/shm */
	struct source devices;	/* the host's /dev */
	struct source null;	/* the host's /dev/null, to cover files with */
	struct source empty;	/* an empty directory to cover directories with, made with /proc */
	int proc_self;
};

static int build_read(struct build *build, size_t i)
{
	const struct place *place = &build->cage->places.items[i];
	int r;

	if (strcmp(place->path, "/") == 0)
		return 0; /* it is the root already */
	r = point_make(place->path, build->sources[i].directory);
	if (!r)
		r = source_mount(&build->sources[i], place->path);
	return r ? r : protect(place->path, place->kind == PLACE_READ ? MS_RDONLY : 0, build->proc_self);
}

/* Mount points in it are made later. Then roots_close makes it read-only. */
static int build_hide(struct build *build, size_t i)
{
	const struct place *place = &build->cage->places.items[i];

	if (build->sources[i].fd < 0)
		return 0; /* a host without /sys or /run */
	return tmpfs(place->path, "mode=0755,size=64k,nr_inodes=256");
}

static int build_link(struct build *build, size_t i)
{
	const struct place *place = &build->cage->places.items[i];
	int r = parents_make(place->path);

	if (!r && symlink(place->text, place->path) < 0 && errno != EEXIST && errno != EROFS)
		r = -errno;
	return r;
}

static int build_text(struct build *build, size_t i)
{
	const struct place *place = &build->cage->places.items[i];
	_cleanup_(fd_closep) int fd = -1;
	size_t size = strlen(place->text);
	int r = parents_make(place->path);

	if (r)
		return r;
	fd = open(place->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0) /* the profile shows all of /, so the host's file is there */
		return errno == EEXIST || errno == EROFS ? 0 : -errno;
	return write(fd, place->text, size) == (ssize_t)size ? 0 : -EIO;
}

/* A user namespace cannot make device files, so the host's are mounted one by one. They must not be nodev. */
static int build_devices(struct build *build, size_t i)
{
	static const char *const nodes[] = {"null", "zero", "full", "random", "urandom"};
	static const struct {
		const char *path, *target;
	} links[] = {
		{"/dev/fd", "/proc/self/fd"},
		{"/dev/stdin", "/proc/self/fd/0"},
		{"/dev/stdout", "/proc/self/fd/1"},
		{"/dev/stderr", "/proc/self/fd/2"},
	};
	struct source source = build->devices;
	char path[32];
	int r = point_make("/dev", true);

	if (!r)
		r = tmpfs("/dev", "mode=0755,size=64k,nr_inodes=64");
	for (size_t n = 0; !r && n < ARRAY_SIZE(nodes); n++) {
		snprintf(path, sizeof(path), "/dev/%s", nodes[n]);
		source.name = nodes[n];
		r = point_make(path, false);
		if (!r)
			r = device_mount(&source, path);
	}
	for (size_t n = 0; !r && n < ARRAY_SIZE(links); n++)
		r = symlink(links[n].target, links[n].path) < 0 ? -errno : 0;
	return r ? r : point_make("/dev/shm", true);
}

/* Files and directories of /proc that tell of the host or its kernel. If only root may open one, it needs no cover:
 * no session is the host's root. */
static const char *const masked[] = {
	"cmdline",	 "locks",	  "partitions",	 "diskstats",  "kcore",
	"keys",		 "key-users",	  "kallsyms",	 "kmsg",       "kpagecount",
	"kpageflags",	 "kpagecgroup",	  "sched_debug", "timer_list", "timer_stats",
	"sysrq-trigger", "latency_stats", "config.gz",	 "modules",    "iomem",
	"ioports",	 "vmallocinfo",	  "slabinfo",	 "swaps",      "mdstat",
	"interrupts",	 "softirqs",	  "vmstat",	 "zoneinfo",   "buddyinfo",
	"pressure",	 "irq",		  "cgroups",	 "sys/fs",     "sys/kernel/random/boot_id"};
_Static_assert(ARRAY_SIZE(masked) <= 64, "cage->masked has a bit for each");

void mounts_prepare(struct cage *cage)
{
	char path[64];
	struct stat meta;

	for (size_t n = 0; n < ARRAY_SIZE(masked); n++) {
		snprintf(path, sizeof(path), "/proc/%s", masked[n]);
		if (stat(path, &meta) == 0 && (meta.st_uid != 0 || meta.st_gid != 0 || (meta.st_mode & 0007)))
			cage->masked |= 1ULL << n;
	}
}

/* /dev/null covers a file. One empty read-only directory covers all directories. */
static int mask(struct build *build, const char *path)
{
	struct stat meta;
	int r;

	if (stat(path, &meta) < 0)
		return -errno;
	if (!S_ISDIR(meta.st_mode))
		return device_mount(&build->null, path);
	if (build->empty.fd >= 0)
		return source_mount(&build->empty, path);
	r = mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=0555,size=4k,nr_inodes=1") < 0
		    ? -errno
		    : 0;
	return r ? r : source_open(&build->empty, path);
}

/* The host may forbid mounting /proc, as a container does that covers parts of its own. Then /proc is an empty
 * directory. */
static int build_proc(struct build *build, size_t i)
{
	char path[64];
	int r = point_make("/proc", true);

	if (r || !build->cage->proc)
		return r ? r : tmpfs("/proc", "mode=0555,size=0,nr_inodes=2");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -errno;
	for (size_t n = 0; !r && n < ARRAY_SIZE(masked); n++) {
		snprintf(path, sizeof(path), "/proc/%s", masked[n]);
		if (build->cage->masked & (1ULL << n))
			r = mask(build, path);
	}
	return r ? r : remount("/proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

/* Both kinds of scratch lie in one file system, so that they share one size. Its directory for /dev/shm is mounted
 * on top of it at once; its directory for /tmp is kept as a source until build_scratch. */
static int build_shm(struct build *build, size_t i)
{
	uint64_t size = build->cage->scratch_size;
	char options[96];
	int r;

	snprintf(options, sizeof(options), "mode=0755,nr_inodes=%llu,size=%llu",
		 (unsigned long long)(size ? MIN(MAX(size >> 12, 1024), INODES_MAX) : INODES_MAX),
		 (unsigned long long)size);
	r = tmpfs("/dev/shm", options);
	if (!r && (mkdir("/dev/shm/shm", 0700) < 0 || mkdir("/dev/shm/tmp", 0700) < 0 ||
		   chmod("/dev/shm/shm", 01777) < 0 || chmod("/dev/shm/tmp", 01777) < 0))
		r = -errno;
	if (!r)
		r = source_open(&build->scratch, "/dev/shm/tmp");
	if (!r && mount("/dev/shm/shm", "/dev/shm", NULL, MS_BIND, NULL) < 0)
		r = -errno;
	return r;
}

static int build_scratch(struct build *build, size_t i)
{
	int r = point_make("/tmp", true);

	return r ? r : source_mount(&build->scratch, "/tmp");
}

/* The file system of terminals is a new one, in which no other terminal can ever appear. /dev/tty is the host's
 * file for the terminal that a process has: no process of the cage has one of the host's. */
static int build_terminals(struct build *build, size_t i)
{
	struct source tty = build->devices;
	int r;

	if (!build->cage->terminals)
		return 0;
	r = point_make("/dev/pts", true);
	if (!r && mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
			"newinstance,ptmxmode=0666,mode=0600,max=" TERMINALS_MAX) < 0)
		r = -errno;
	if (!r && symlink("pts/ptmx", "/dev/ptmx") < 0)
		r = -errno;
	if (!r)
		r = point_make("/dev/tty", false);
	tty.name = "tty";
	return r ? r : device_mount(&tty, "/dev/tty");
}

static int (*const build_place[_PLACE_KIND_N])(struct build *build, size_t i) = {
	[PLACE_READ] = build_read,	     [PLACE_WRITE] = build_read,      [PLACE_HIDE] = build_hide,
	[PLACE_LINK] = build_link,	     [PLACE_TEXT] = build_text,	      [PLACE_DEVICES] = build_devices,
	[PLACE_PROC] = build_proc,	     [PLACE_SCRATCH] = build_scratch, [PLACE_SHM] = build_shm,
	[PLACE_TERMINALS] = build_terminals,
};

/* ---- all mounts ---- */

static int sources_open(struct build *build, struct cage_report *report)
{
	const struct places *places = &build->cage->places;
	int r;

	build->sources = malloc(places->n * sizeof(*build->sources));
	if (!build->sources)
		return cage_fail(report, ENOMEM, "the mounts");
	for (size_t i = 0; i < places->n; i++) {
		const struct place *place = &places->items[i];

		build->sources[i] = (struct source){.fd = -1};
		if (place->kind != PLACE_READ && place->kind != PLACE_WRITE && place->kind != PLACE_HIDE)
			continue;
		r = source_open_place(&build->sources[i], place);
		if (r && (place->kind != PLACE_HIDE || place->pinned))
			return cage_fail_place(report, r, place->path);
	}
	r = source_open(&build->devices, "/dev");
	if (!r)
		r = source_open(&build->null, "/dev/null");
	if (r)
		return cage_fail(report, -r, "/dev/null");
	build->proc_self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (build->proc_self < 0)
		return cage_fail(report, errno, "/proc/self");
	return 0;
}

/* Mounts the new root and makes it the root. The old root is then stacked on top of the new one, where only the
 * path "." reaches it. */
static int roots_exchange(struct build *build, struct cage_report *report)
{
	const struct places *places = &build->cage->places;
	bool everything = places->n > 0 && strcmp(places->items[0].path, "/") == 0;
	int r = 0;

	if (mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0)
		return cage_fail(report, errno, "cannot make the mounts private");
	if (!everything)
		r = tmpfs(STAGE, "mode=0755,size=1m,nr_inodes=4096");
	else if (mount("/", STAGE, NULL, MS_BIND | MS_REC, NULL) < 0)
		r = -errno;
	if (!r && everything)
		r = protect(STAGE, places->items[0].kind == PLACE_READ ? MS_RDONLY : 0, build->proc_self);
	if (r)
		return cage_fail(report, -r, "cannot mount a new root");
	if (chdir(STAGE) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || chdir("/") < 0)
		return cage_fail(report, errno, "cannot exchange the roots");
	return 0;
}

/* Detaches the host's tree. Then the directories in which mount points were made become read-only. */
static int roots_close(struct build *build, struct cage_report *report)
{
	const struct places *places = &build->cage->places;
	int r;

	if (chdir("/") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return cage_fail(report, errno, "cannot leave the host's root");
	for (size_t i = 0; i < places->n; i++) {
		const struct place *place = &places->items[i];

		if (place->kind != PLACE_DEVICES && (place->kind != PLACE_HIDE || build->sources[i].fd < 0))
			continue;
		r = remount(place->path, MS_RDONLY | MS_NOSUID);
		if (r)
			return cage_fail(report, -r, "cannot close %s", place->path);
	}
	r = remount("/", places->items[0].kind == PLACE_WRITE && !places->items[0].path[1] ? 0 : MS_RDONLY);
	return r ? cage_fail(report, -r, "cannot close the root") : 0;
}

static void build_end(struct build *build)
{
	for (size_t i = 0; build->sources && i < build->cage->places.n; i++)
		fd_close(build->sources[i].fd);
	free(build->sources);
	fd_close(build->scratch.fd);
	fd_close(build->devices.fd);
	fd_close(build->null.fd);
	fd_close(build->empty.fd);
	fd_close(build->proc_self);
}

static int build_all(struct build *build, struct cage_report *report)
{
	const struct places *places = &build->cage->places;
	int r;

	/* The sources are opened before this process becomes the session's user, because as root it may open more.
	 * Files that are made later belong to the session. */
	umask(022);
	r = sources_open(build, report);
	if (!r && (build->cage->namespaces & CLONE_NEWUSER))
		r = privileges_become(build->cage, report);
	if (!r)
		r = roots_exchange(build, report);
	for (size_t i = 0; !r && i < places->n; i++) {
		r = build_place[places->items[i].kind](build, i);
		if (r)
			return cage_fail(report, -r, "cannot mount %s", places->items[i].path);
	}
	return r ? r : roots_close(build, report);
}

int mounts_enter(struct cage *cage, struct cage_report *report)
{
	struct build build = {
		.cage = cage, .scratch.fd = -1, .devices.fd = -1, .null.fd = -1, .empty.fd = -1, .proc_self = -1};
	int r;

	if (!(cage->namespaces & CLONE_NEWNS))
		return 0;
	r = build_all(&build, report);
	build_end(&build);
	if (r)
		return r;
	r = descriptors_renew(cage);
	return r ? cage_fail(report, -r, "/dev/null") : 0;
}
