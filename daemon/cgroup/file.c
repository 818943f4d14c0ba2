/* What is written is a few digits, what is read is a list of numbers or words. */
#include "file.h"

#include <signal.h>
#include <stdio.h>

int cgroup_path(char path[static PATH_SIZE], const char *directory, const char *name)
{
	int n = snprintf(path, PATH_SIZE, "%s/%s", directory, name);

	return n < 0 || n >= PATH_SIZE ? -ENAMETOOLONG : 0;
}

static int file_open(int fd, const char *group, const char *file, int flags)
{
	char path[PATH_SIZE];
	int r = cgroup_path(path, group, file);

	if (r)
		return r;
	r = openat(fd, path, flags | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

int cgroup_write(int fd, const char *group, const char *file, const char *text)
{
	_cleanup_(fd_closep) int out = file_open(fd, group, file, O_WRONLY);

	if (out < 0)
		return out;
	return write(out, text, strlen(text)) < 0 ? -errno : 0;
}

bool cgroup_lists(const char *group, const char *file, const char *word)
{
	_cleanup_(fd_closep) int in = file_open(AT_FDCWD, group, file, O_RDONLY);
	char text[512], *rest = text, *item;
	ssize_t n = in < 0 ? -1 : read(in, text, sizeof(text) - 1);

	text[MAX(n, 0)] = '\0';
	while ((item = strsep(&rest, " \n")))
		if (strcmp(item, word) == 0)
			return true;
	return false;
}

int cgroup_pass_down(int fd, const char *group, unsigned controllers)
{
	int r = 0;

	for (int i = 0; i < _CONTROLLER_N && !r; i++) {
		char text[16];

		snprintf(text, sizeof(text), "+%s", controller_names[i]);
		r = controllers & CONTROLLER_BIT(i) ? cgroup_write(fd, group, "cgroup.subtree_control", text) : 0;
	}
	return r;
}

int cgroup_move_in(int fd, const char *group, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	return cgroup_write(fd, group, "cgroup.procs", text);
}

/* @to: NULL to kill instead. */
static void for_all(int fd, const char *group, const char *to)
{
	int in = file_open(fd, group, "cgroup.procs", O_RDONLY), pid;
	FILE *processes = in < 0 ? NULL : fdopen(in, "r");

	if (!processes) {
		fd_close(in);
		return;
	}
	while (fscanf(processes, "%d", &pid) == 1) {
		/* 0 stands for a process of another pid namespace. */
		if (pid > 0 && to)
			(void)cgroup_move_in(AT_FDCWD, to, (pid_t)pid);
		else if (pid > 0)
			(void)kill((pid_t)pid, SIGKILL);
	}
	(void)fclose(processes);
}

void cgroup_kill_all(int fd, const char *group)
{
	for_all(fd, group, NULL);
}

void cgroup_move_all(const char *group, const char *to)
{
	for_all(AT_FDCWD, group, to);
}
