/* One group, in as many hierarchies as there are. The kernel's files differ between the versions; the table
 * below has all differences. */
#include "group.h"

#include "base/log.h"
#include "file.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

/* The files to write for a limit, in this order. With a factor of 0 the text is the same for every limit. */
static const struct setting {
	enum controller controller;
	unsigned version; /* 0: both */
	const char *file;
	uint64_t factor;
	const char *suffix;
	int ignored; /* this error is none; -1: no error is one */
} settings[] = {
	/* Memory with swap is never less than memory: the first is for raising both, the last for the first time.
	 */
	{CONTROLLER_MEMORY, 1, "memory.memsw.limit_in_bytes", 1, "", -1},
	{CONTROLLER_MEMORY, 1, "memory.limit_in_bytes", 1, "", 0},
	{CONTROLLER_MEMORY, 1, "memory.memsw.limit_in_bytes", 1, "", -1},
	{CONTROLLER_MEMORY, 2, "memory.max", 1, "", 0},
	{CONTROLLER_MEMORY, 2, "memory.swap.max", 0, "", -1},
	{CONTROLLER_MEMORY, 2, "memory.oom.group", 0, "", -1},
	{CONTROLLER_PIDS, 0, "pids.max", 1, "", 0},
	/* In microseconds of every 100 ms. The kernel refuses more than a group above has; then the limit of
	 * that group holds. */
	{CONTROLLER_CPU, 1, "cpu.cfs_quota_us", 100, "", EINVAL},
	{CONTROLLER_CPU, 2, "cpu.max", 100, " 100000", 0},
};

unsigned group_would_hold(const struct cgroups *cgroups, const struct group_limits *limits)
{
	unsigned held = 0;

	for (int i = 0; i < _CONTROLLER_N; i++)
		if (limits->of[i] && cgroups_find(cgroups, (enum controller)i))
			held |= CONTROLLER_BIT(i);
	return held;
}

static int limit_write(const struct group *group, enum controller controller, uint64_t limit)
{
	const struct hierarchy *hierarchy = cgroups_find(group->cgroups, controller);

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		const struct setting *setting = &settings[i];
		char text[64];
		int r;

		if (setting->controller != controller ||
		    (setting->version && setting->version != hierarchy->version))
			continue;
		snprintf(text, sizeof(text), "%" PRIu64 "%s", limit * setting->factor, setting->suffix);
		r = cgroup_write(hierarchy->fd, group->name, setting->file, text);
		if (r && setting->ignored != -1 && setting->ignored != -r)
			return r;
	}
	return 0;
}

int group_limit(struct group *group, enum controller controller, uint64_t limit)
{
	int r = 0;

	if (!(group->held & CONTROLLER_BIT(controller)) || group->limits.of[controller] == limit)
		return 0;
	r = limit_write(group, controller, limit);
	if (!r)
		group->limits.of[controller] = limit;
	return r;
}

static int name_set(struct group *group, const char *share, const char *name)
{
	int size = snprintf(group->name, sizeof(group->name), "%s%s%s", share, *share ? "/" : "", name);

	return size < 0 || (size_t)size >= sizeof(group->name) ? -ENAMETOOLONG : 0;
}

static void events_open(struct group *group)
{
	const struct hierarchy *memory = cgroups_find(group->cgroups, CONTROLLER_MEMORY);
	char path[PATH_SIZE];

	if (!(group->held & CONTROLLER_BIT(CONTROLLER_MEMORY)) ||
	    cgroup_path(path, group->name, memory->version == 1 ? "memory.oom_control" : "memory.events"))
		return;
	group->events = openat(memory->fd, path, O_RDONLY | O_CLOEXEC);
	(void)group_oom_killed(group);
}

int group_make(struct group *group, const struct cgroups *cgroups, const char *share, const char *name,
	       const struct group_limits *limits)
{
	int r = 0;

	*group = GROUP_NONE;
	group->held = group_would_hold(cgroups, limits) | (*share ? CONTROLLER_BIT(CONTROLLER_CPU) : 0);
	if (!group->held)
		return 0;
	group->cgroups = cgroups;
	if (name_set(group, share, name))
		return -ENAMETOOLONG;
	/* If the group exists, a router has made it and died before it could say so; names are never used twice. */
	for (size_t i = 0; i < cgroups->n && !r; i++)
		if (cgroups->hierarchies[i].controllers & group->held)
			r = mkdirat(cgroups->hierarchies[i].fd, group->name, 0755) < 0 && errno != EEXIST ? -errno
													  : 0;
	for (int i = 0; i < _CONTROLLER_N && !r; i++)
		r = group_limit(group, (enum controller)i, limits->of[i]);
	if (r)
		log_error(NULL, "cannot make the control group %s: %s", group->name, strerror(-r));
	else
		events_open(group);
	return r;
}

void group_revive(struct group *group, const struct cgroups *cgroups, const char *name, unsigned held,
		  const struct group_limits *limits, uint64_t oom_kills)
{
	*group = GROUP_NONE;
	for (int i = 0; i < _CONTROLLER_N; i++)
		if (cgroups_find(cgroups, (enum controller)i))
			group->held |= held & CONTROLLER_BIT(i);
	if (!group->held)
		return;
	group->cgroups = cgroups;
	(void)name_set(group, "", name);
	group->limits = *limits;
	events_open(group);
	group->oom_kills = oom_kills;
}

void group_deinit(struct group *group)
{
	fd_close(group->events);
	*group = GROUP_NONE;
}

static int door_open(const struct hierarchy *hierarchy, const char *name)
{
	char path[PATH_SIZE];
	int fd, r = cgroup_path(path, name, "tasks");

	if (r)
		return r;
	fd = hierarchy->version == 1 ? openat(hierarchy->fd, path, O_WRONLY | O_CLOEXEC)
				     : openat(hierarchy->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int group_doors(const struct group *group, int fds[static _CONTROLLER_N])
{
	int n = 0;

	for (size_t i = 0; group->cgroups && i < group->cgroups->n; i++) {
		const struct hierarchy *hierarchy = &group->cgroups->hierarchies[i];
		int fd;

		if (!(hierarchy->controllers & group->held))
			continue;
		fd = door_open(hierarchy, group->name);
		if (fd < 0) {
			while (n > 0)
				fd_close(fds[--n]);
			return fd;
		}
		fds[n++] = fd;
	}
	return n;
}

bool group_oom_killed(struct group *group)
{
	uint64_t before = group->oom_kills;
	char text[1024], *at;
	ssize_t size;

	if (group->events < 0)
		return false;
	size = pread(group->events, text, sizeof(text) - 1, 0);
	text[MAX(size, 0)] = '\0';
	at = strstr(text, "oom_kill ");
	/* Version 1 also has oom_kill_disable, without the blank. */
	if (at)
		group->oom_kills = strtoull(at + strlen("oom_kill "), NULL, 10);
	return group->oom_kills > before;
}

bool group_kill(const struct group *group)
{
	bool killed = false;

	for (size_t i = 0; group->cgroups && i < group->cgroups->n; i++) {
		const struct hierarchy *hierarchy = &group->cgroups->hierarchies[i];

		if (hierarchy->version == 2 && (hierarchy->controllers & group->held))
			killed |= cgroup_write(hierarchy->fd, group->name, "cgroup.kill", "1") == 0;
	}
	return killed;
}
