/* Control groups: laird makes them, the warden enters them before anything else. To move another process into a
 * group takes the kernel milliseconds. With version 1 a thread can move itself in microseconds. With version 2
 * it cannot, but a process can be born in a group. */
#include "steps.h"

#include <fcntl.h>
#include <sys/stat.h>

int groups_take(struct cage *cage, const int *doors)
{
	size_t n = 0;

	cage->birthplace = -1;
	for (; doors && *doors >= 0; doors++) {
		struct stat status;

		if (fstat(*doors, &status) < 0)
			return -errno;
		if (S_ISDIR(status.st_mode))
			cage->birthplace = *doors;
		else if (n < CAGE_GROUPS_MAX)
			cage->doors[n++] = *doors;
	}
	cage->doors[n] = -1;
	return 0;
}

static int enter_by(int fd)
{
	return write(fd, "0", 1) == 1 ? 0 : -errno;
}

/* For a kernel that could not clone the warden into its group. */
static int enter_birthplace(int directory)
{
	_cleanup_(fd_closep) int fd = openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : enter_by(fd);
}

int groups_enter(struct cage *cage, struct cage_report *report)
{
	int r = cage->birthplace >= 0 ? enter_birthplace(cage->birthplace) : 0;

	for (const int *door = cage->doors; !r && *door >= 0; door++)
		r = enter_by(*door);
	if (r)
		return cage_fail(report, -r, "cannot enter a control group");
	if (cage->memory_group)
		cage_guard(report, "memory-cgroup");
	if (cage->processes_group)
		cage_guard(report, "pids-cgroup");
	if (cage->cpu_group)
		cage_guard(report, "cpu-cgroup");
	return 0;
}
