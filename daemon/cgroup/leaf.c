/* Into the leaf and out of it. The group above may have other members: its controllers are switched off again
 * only if nobody else in it needs them. */
#include "leaf.h"

#include "file.h"

#include <stdio.h>
#include <sys/stat.h>

/* Of laird, which does little and is waited for, beside the shares of its sessions. */
#define WEIGHT "10000"

static int controller_switch(const char *group, char sign, enum controller controller)
{
	char text[16];

	snprintf(text, sizeof(text), "%c%s", sign, controller_names[controller]);
	return cgroup_write(AT_FDCWD, group, "cgroup.subtree_control", text);
}

static void controllers_off(const char *group)
{
	for (int i = 0; i < _CONTROLLER_N; i++)
		(void)controller_switch(group, '-', (enum controller)i);
}

/* Two links are a directory's own, every other is a child's. */
static bool has_one_child(const char *group)
{
	struct stat status;

	return stat(group, &status) == 0 && status.st_nlink == 3;
}

void leaf_leave(const char *path)
{
	char above[PATH_SIZE], leaf[PATH_SIZE];

	if (path_directory(above, path) || cgroup_path(leaf, path, CGROUP_LEAF) || access(leaf, F_OK) < 0)
		return;
	controllers_off(path);
	if (has_one_child(above))
		controllers_off(above);
	cgroup_move_all(leaf, above);
	(void)rmdir(leaf);
	(void)rmdir(path);
}

static int directory_make(const char *path)
{
	return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int move_down(const char *path, const char *leaf)
{
	int r = directory_make(path);

	if (!r)
		r = directory_make(leaf);
	if (!r)
		r = cgroup_move_in(AT_FDCWD, leaf, getppid());
	return r ? r : cgroup_move_in(AT_FDCWD, leaf, getpid());
}

/* Returns those that are on now. */
static unsigned controllers_on(const char *above, const char *path, unsigned controllers, int *errors)
{
	for (int i = 0; i < _CONTROLLER_N; i++) {
		int r;

		if (!(controllers & CONTROLLER_BIT(i)))
			continue;
		r = controller_switch(above, '+', (enum controller)i);
		if (!r)
			r = controller_switch(path, '+', (enum controller)i);
		errors[i] = -r;
		if (r)
			controllers &= ~CONTROLLER_BIT(i);
	}
	return controllers;
}

void leaf_enter(const char *path, unsigned controllers, int errors[static _CONTROLLER_N])
{
	char above[PATH_SIZE], leaf[PATH_SIZE];
	int r = path_directory(above, path);

	for (int i = 0; i < _CONTROLLER_N && !r; i++) {
		if ((controllers & CONTROLLER_BIT(i)) &&
		    !cgroup_lists(above, "cgroup.controllers", controller_names[i])) {
			controllers &= ~CONTROLLER_BIT(i);
			errors[i] = ENODEV;
		}
	}
	if (!controllers)
		return;
	if (!r)
		r = cgroup_path(leaf, path, CGROUP_LEAF);
	if (!r)
		r = move_down(path, leaf);
	for (int i = 0; i < _CONTROLLER_N && r; i++)
		if (controllers & CONTROLLER_BIT(i))
			errors[i] = -r;
	if (r || !controllers_on(above, path, controllers, errors))
		leaf_leave(path);
	else
		(void)cgroup_write(AT_FDCWD, leaf, "cpu.weight", WEIGHT); /* if cpu is one of them */
}
