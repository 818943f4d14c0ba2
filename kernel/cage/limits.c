/* Resource limits. They hold for one process, or for all of one user, never for a session: that needs control
 * groups, which laird makes around us if it can. Soft and hard limits are the same, so a session cannot raise
 * them. */
#include "steps.h"

#include <stdio.h>
#include <sys/resource.h>

static void file_closep(FILE **filep)
{
	if (*filep)
		fclose(*filep);
}

/* RLIMIT_DATA also counts the data that each fork has from the template. */
int limits_prepare(struct cage *cage)
{
	_cleanup_(file_closep) FILE *status = fopen("/proc/self/status", "re");
	unsigned long kilobytes = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmData: %lu", &kilobytes) == 1)
			break;
	cage->data_baseline = (uint64_t)kilobytes << 10;
	return status ? 0 : -errno;
}

static int limit_set(int resource, uint64_t value)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
		return -errno;
	limit.rlim_cur = limit.rlim_max = MIN((rlim_t)value, limit.rlim_max);
	return setrlimit((__rlimit_resource_t)resource, &limit) < 0 ? -errno : 0;
}

/* With a limit of 0 the kernel writes no core file. But if the host pipes core files to a program, it still starts
 * that program for each, as root and outside the cage. With a limit of 1 it does not. */
#define NO_CORE 1

int limits_enter(struct cage *cage, struct cage_report *report)
{
	/* A control group counts better, and laird can raise its limit for each frozen copy. */
	bool count = cage->processes && cage->own_processes && !cage->processes_group;
	const struct {
		const char *name;
		int resource;
		bool wanted;
		uint64_t value;
	} limits[] = {
		{"core", RLIMIT_CORE, true, NO_CORE},
		{"nproc", RLIMIT_NPROC, count, cage->processes},
		{"nofile", RLIMIT_NOFILE, cage->open_files, cage->open_files},
		{"fsize", RLIMIT_FSIZE, cage->file_size, cage->file_size},
		{"data", RLIMIT_DATA, cage->memory, cage->data_baseline + cage->memory},
		{"memlock", RLIMIT_MEMLOCK, true, 65536},
		{"msgqueue", RLIMIT_MSGQUEUE, true, 0},
		{"sigpending", RLIMIT_SIGPENDING, true, 1024},
		{"rtprio", RLIMIT_RTPRIO, true, 0},
		{"nice", RLIMIT_NICE, true, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		int r = limits[i].wanted ? limit_set(limits[i].resource, limits[i].value) : 0;

		if (r)
			return cage_fail(report, -r, "the limit %s", limits[i].name);
	}
	cage_guard(report, "rlimits");
	if (count)
		cage_guard(report, "processes");
	return 0;
}
