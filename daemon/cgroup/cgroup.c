/* Our directories in the hierarchies: made, tried, swept and removed. We do not ask for the version of the
 * kernel or for our user: a controller is there if it could limit a process. Version 2 lets a group have either
 * processes or controlled children, so there laird first moves itself into a child of its own. */
#include "cgroup.h"

#include "base/directory.h"
#include "base/log.h"
#include "base/spawn.h"
#include "file.h"
#include "group.h"
#include "leaf.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* What gets SIGKILL needs a moment to leave its group. */
#define DROP_PAUSE_US 10000
#define DROP_TRIES 200
/* The pause between two looks at groups in which processes may live for hours. */
#define ADOPTED_PAUSE_US 10000000
/* A value that every kernel takes as bytes, as processes and as thousandths of a processor. */
#define TRY_LIMIT (1 << 20)

/* ---- where ---- */

static int places_find(struct cgroup_home places[static _CONTROLLER_N])
{
	FILE *cgroup = fopen("/proc/self/cgroup", "re"), *mountinfo = fopen("/proc/self/mountinfo", "re");
	int r = cgroup && mountinfo ? cgroup_homes_read(places, cgroup, mountinfo) : -errno;

	if (cgroup)
		(void)fclose(cgroup);
	if (mountinfo)
		(void)fclose(mountinfo);
	return r;
}

/* Our directory in the group at @place; version 2 may have moved us there already. */
static char *directory_of(const struct cgroup_home *place, const char *socket)
{
	char name[PATH_SIZE], *path;
	size_t size = strlen(place->path), inner;

	snprintf(name, sizeof(name), "/lair-%016" PRIx64 "/" CGROUP_LEAF, path_hash(socket));
	inner = strlen(name);
	if (place->version == 2 && size >= inner && strcmp(place->path + size - inner, name) == 0)
		return strndup(place->path, size - strlen("/" CGROUP_LEAF));
	name[inner - strlen("/" CGROUP_LEAF)] = '\0';
	return asprintf(&path, "%s%s", place->path, name) < 0 ? NULL : path;
}

static struct hierarchy *hierarchy_add(struct cgroups *cgroups, unsigned version, char *path)
{
	for (size_t i = 0; i < cgroups->n; i++) {
		if (strcmp(cgroups->hierarchies[i].path, path) == 0) {
			free(path);
			return &cgroups->hierarchies[i];
		}
	}
	cgroups->hierarchies[cgroups->n] = (struct hierarchy){.version = version, .path = path, .fd = -1};
	return &cgroups->hierarchies[cgroups->n++];
}

/* Find every hierarchy that could have one of the controllers in ->controllers. */
static void hierarchies_find(struct cgroups *cgroups, const char *socket)
{
	struct cgroup_home places[_CONTROLLER_N] = {{0}};

	(void)places_find(places); /* none if it fails */
	for (int i = 0; i < _CONTROLLER_N; i++) {
		char *path = places[i].version ? directory_of(&places[i], socket) : NULL;

		if (path)
			hierarchy_add(cgroups, places[i].version, path)->controllers |= CONTROLLER_BIT(i);
		else
			snprintf(cgroups->lacking[i], sizeof(cgroups->lacking[i]),
				 "no hierarchy of control groups has it");
	}
	cgroup_homes_deinit(places);
}

/* ---- removing ---- */

/* False if somebody is still in it; with @kill they have got SIGKILL. */
static bool remove_one(int directory, const char *name, bool kill)
{
	if (unlinkat(directory, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
		return true;
	if (kill)
		cgroup_kill_all(directory, name);
	return false;
}

/* A process that got SIGKILL may take a moment; this waits for it. */
static void remove_patiently(const struct hierarchy *hierarchy, const char *name, void *userdata)
{
	for (int tries = 0; !remove_one(hierarchy->fd, name, true); tries++) {
		if (tries == DROP_TRIES) {
			log_warn(NULL, "the control group %s/%s does not empty", hierarchy->path, name);
			return;
		}
		(void)nanosleep(&(struct timespec){.tv_nsec = DROP_PAUSE_US * 1000L}, NULL);
	}
}

typedef void group_fn(const struct hierarchy *hierarchy, const char *name, void *userdata);

/* Of all groups in @share; "": of those that are in none. Those in a share come before it. */
static void for_each_in(const struct hierarchy *hierarchy, const char *share, group_fn *fn, void *userdata)
{
	_cleanup_(fd_closep) int fd =
		openat(hierarchy->fd, *share ? share : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : directory_read(fd);
	struct dirent *entry;
	char name[PATH_SIZE];

	while (dir && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || strcmp(entry->d_name, CGROUP_LEAF) == 0)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", share, *share ? "/" : "", entry->d_name);
		if (!*share)
			for_each_in(hierarchy, name, fn, userdata);
		fn(hierarchy, name, userdata);
	}
	if (dir)
		(void)closedir(dir);
}

/* Do @fn for all groups in our directory but the one laird is in itself. */
static void for_each_group(const struct hierarchy *hierarchy, group_fn *fn, void *userdata)
{
	for_each_in(hierarchy, "", fn, userdata);
}

/* ---- getting ready ---- */

static void lack(struct cgroups *cgroups, struct hierarchy *hierarchy, enum controller controller, const char *what,
		 int error)
{
	hierarchy->controllers &= ~CONTROLLER_BIT(controller);
	snprintf(cgroups->lacking[controller], sizeof(cgroups->lacking[controller]), "%.200s: %s", what,
		 strerror(error));
}

/* For all of @errors (positive) that are any. */
static void lack_those(struct cgroups *cgroups, struct hierarchy *hierarchy, const int errors[_CONTROLLER_N])
{
	char above[PATH_SIZE];

	for (int i = 0; i < _CONTROLLER_N; i++)
		if (errors[i] && path_directory(above, hierarchy->path) == 0)
			lack(cgroups, hierarchy, (enum controller)i, above, errors[i]);
}

static void lack_all(struct cgroups *cgroups, struct hierarchy *hierarchy, int error)
{
	for (int i = 0; i < _CONTROLLER_N; i++)
		if (hierarchy->controllers & CONTROLLER_BIT(i))
			lack(cgroups, hierarchy, (enum controller)i, hierarchy->path, error);
}

static void hierarchy_open(struct cgroups *cgroups, struct hierarchy *hierarchy)
{
	int errors[_CONTROLLER_N] = {0};

	if (hierarchy->version == 2)
		leaf_enter(hierarchy->path, hierarchy->controllers, errors);
	else if (mkdir(hierarchy->path, 0755) < 0 && errno != EEXIST)
		lack_all(cgroups, hierarchy, errno);
	lack_those(cgroups, hierarchy, errors);
	if (!hierarchy->controllers)
		return;
	hierarchy->fd = open(hierarchy->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (hierarchy->fd < 0)
		lack_all(cgroups, hierarchy, errno);
}

/* ---- trying ---- */

static int wait_for_kill(const char *argument)
{
	for (;;)
		pause();
	return 0;
}

/* Limit a process that does nothing. */
static int controller_try(struct cgroups *cgroups, enum controller controller, const char *name, pid_t pid)
{
	struct group_limits limits = {0};
	struct group group;
	int r;

	limits.of[controller] = TRY_LIMIT;
	r = group_make(&group, cgroups, "", name, &limits);
	group_deinit(&group);
	return r ? r : cgroup_move_in(cgroups_find(cgroups, controller)->fd, name, pid);
}

static const char *const try_names[_CONTROLLER_N] = {
	[CONTROLLER_MEMORY] = "try-memory", [CONTROLLER_PIDS] = "try-pids", [CONTROLLER_CPU] = "try-cpu"};

static void tries_remove(const struct cgroups *cgroups)
{
	for (size_t i = 0; i < cgroups->n; i++)
		for (int c = 0; c < _CONTROLLER_N && cgroups->hierarchies[i].fd >= 0; c++)
			remove_patiently(&cgroups->hierarchies[i], try_names[c], NULL);
}

static void controllers_try(struct cgroups *cgroups)
{
	pid_t pid;
	int r = spawn_helper(&pid, wait_for_kill, NULL);

	tries_remove(cgroups);
	for (int i = 0; i < _CONTROLLER_N; i++) {
		const struct hierarchy *found = cgroups_find(cgroups, (enum controller)i);
		struct hierarchy *hierarchy = found ? &cgroups->hierarchies[found - cgroups->hierarchies] : NULL;
		int one;

		if (!hierarchy)
			continue;
		one = r ? r : controller_try(cgroups, (enum controller)i, try_names[i], pid);
		if (one)
			lack(cgroups, hierarchy, (enum controller)i, hierarchy->path, -one);
	}
	if (r)
		return;
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	tries_remove(cgroups);
}

static void unused_close(struct hierarchy *hierarchy)
{
	if (hierarchy->controllers)
		return;
	fd_closep(&hierarchy->fd);
	if (hierarchy->version == 2)
		leaf_leave(hierarchy->path);
	else
		(void)rmdir(hierarchy->path);
}

void cgroups_open(struct cgroups *cgroups, const char *socket, struct event_loop *loop)
{
	*cgroups = (struct cgroups){.loop = loop};
	list_init(&cgroups->leftovers);
	hierarchies_find(cgroups, socket);
	for (size_t i = 0; i < cgroups->n; i++)
		hierarchy_open(cgroups, &cgroups->hierarchies[i]);
	controllers_try(cgroups);
	for (size_t i = 0; i < cgroups->n; i++)
		unused_close(&cgroups->hierarchies[i]);
}

struct leftover {
	struct list node;
	bool kill; /* nobody has a right to be in it any more */
	char name[];
};

void cgroups_close(struct cgroups *cgroups)
{
	struct leftover *leftover;

	if (cgroups->loop) {
		timer_clear(cgroups->loop, &cgroups->retry);
		list_for_each (leftover, &cgroups->leftovers, node)
			free(leftover);
	}
	for (size_t i = 0; i < cgroups->n; i++) {
		fd_closep(&cgroups->hierarchies[i].fd);
		free(cgroups->hierarchies[i].path);
	}
	*cgroups = (struct cgroups){0};
}

const struct hierarchy *cgroups_find(const struct cgroups *cgroups, enum controller controller)
{
	for (size_t i = 0; i < cgroups->n; i++)
		if (cgroups->hierarchies[i].controllers & CONTROLLER_BIT(controller))
			return &cgroups->hierarchies[i];
	return NULL;
}

/* ---- the end of groups ---- */

static bool remove_everywhere(const struct cgroups *cgroups, const char *name, bool kill)
{
	bool gone = true;

	for (size_t i = 0; i < cgroups->n; i++)
		if (cgroups->hierarchies[i].fd >= 0)
			gone &= remove_one(cgroups->hierarchies[i].fd, name, kill);
	return gone;
}

static void on_retry(struct timer *timer)
{
	struct cgroups *cgroups = container_of(timer, struct cgroups, retry);
	uint64_t pause = ADOPTED_PAUSE_US;
	struct leftover *leftover;

	list_for_each (leftover, &cgroups->leftovers, node) {
		if (remove_everywhere(cgroups, leftover->name, leftover->kill)) {
			list_remove(&leftover->node);
			free(leftover);
		} else if (leftover->kill) {
			pause = DROP_PAUSE_US;
		}
	}
	if (!list_empty(&cgroups->leftovers))
		(void)timer_set(cgroups->loop, &cgroups->retry, event_now() + pause, on_retry);
}

/* If there is no memory to remember one, it is removed when laird ends. */
static void leftover_add(struct cgroups *cgroups, const char *name, bool kill)
{
	struct leftover *leftover = malloc(sizeof(*leftover) + strlen(name) + 1);

	if (!leftover)
		return;
	leftover->kill = kill;
	strcpy(leftover->name, name);
	list_init(&leftover->node);
	list_append(&cgroups->leftovers, &leftover->node);
	(void)timer_set(cgroups->loop, &cgroups->retry, event_now() + DROP_PAUSE_US, on_retry);
}

void cgroups_drop(struct cgroups *cgroups, const char *name)
{
	if (!remove_everywhere(cgroups, name, true))
		leftover_add(cgroups, name, true);
}

static void adopt_one(const struct hierarchy *hierarchy, const char *name, void *userdata)
{
	leftover_add(userdata, name, false);
}

void cgroups_adopt(struct cgroups *cgroups)
{
	for (size_t i = 0; i < cgroups->n; i++)
		if (cgroups->hierarchies[i].fd >= 0)
			for_each_group(&cgroups->hierarchies[i], adopt_one, cgroups);
}

void cgroups_erase(const char *socket)
{
	struct cgroups cgroups = {0};

	hierarchies_find(&cgroups, socket);
	for (size_t i = 0; i < cgroups.n; i++) {
		struct hierarchy *hierarchy = &cgroups.hierarchies[i];

		hierarchy->fd = open(hierarchy->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (hierarchy->fd < 0)
			continue;
		for_each_group(hierarchy, remove_patiently, NULL);
		if (hierarchy->version == 2)
			leaf_leave(hierarchy->path);
		else
			(void)rmdir(hierarchy->path);
	}
	cgroups_close(&cgroups);
}
