/* Strangers are found as the warden's children, and in a pid namespace of its own by the cage's /proc: there also
 * those whose parents live. A child of an interpreter that is spared is spared, too. */
#include "strangers.h"

#include "proto/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

/* More processes than any profile allows. */
#define PROCESSES_MAX 16384

struct process {
	pid_t pid, parent;
};

struct processes {
	struct process *all; /* in the order of their numbers */
	size_t n;
};

/* ---- lists ---- */

/* Opens the list of this warden's children. If no /proc could be mounted, /proc may belong to another pid
 * namespace, which has other numbers for the same processes. Then returns -1. */
static int children_open(void)
{
	char pid[16] = "";

	if (readlink("/proc/self", pid, sizeof(pid) - 1) < 0 || atoi(pid) != getpid())
		return -1;
	return open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
}

/* 0: it is gone. */
static pid_t parent_of(int proc, const char *number)
{
	char path[32], text[512], *end;
	ssize_t size;
	int fd, parent = 0;

	snprintf(path, sizeof(path), "%.12s/stat", number);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	fd_close(fd);
	text[MAX(size, 0)] = '\0';
	end = strrchr(text, ')'); /* the name before it may contain anything */
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static int process_compare(const void *a, const void *b)
{
	return ((const struct process *)a)->pid - ((const struct process *)b)->pid;
}

static void processes_deinit(struct processes *processes)
{
	free(processes->all);
}

/* All processes of the cage but the warden. Returns 0 or -errno. */
static int processes_list(struct processes *processes)
{
	DIR *directory = getpid() == 1 ? opendir("/proc") : NULL;
	const struct dirent *entry;

	processes->n = 0;
	if (!directory)
		return -ENOENT;
	processes->all = malloc(PROCESSES_MAX * sizeof(*processes->all));
	while (processes->all && processes->n < PROCESSES_MAX && (entry = readdir(directory))) {
		pid_t pid = atoi(entry->d_name), parent;

		if (pid <= 1)
			continue;
		parent = parent_of(dirfd(directory), entry->d_name);
		if (parent > 0)
			processes->all[processes->n++] = (struct process){pid, parent};
	}
	closedir(directory);
	if (!processes->all)
		return -ENOMEM;
	qsort(processes->all, processes->n, sizeof(*processes->all), process_compare);
	return 0;
}

/* 0: the warden, or one that is gone. */
static pid_t parent_in(const struct processes *processes, pid_t pid)
{
	const struct process key = {.pid = pid}, *found;

	found = bsearch(&key, processes->all, processes->n, sizeof(key), process_compare);
	return found && found->parent > 1 ? found->parent : 0;
}

/* Whether it is an interpreter, or comes from one. */
static bool is_spared(const struct strangers *strangers, const struct processes *processes, pid_t pid)
{
	for (size_t depth = 0; pid && depth <= processes->n; depth++, pid = parent_in(processes, pid))
		if (strangers->spared(strangers->userdata, pid))
			return true;
	return false;
}

static bool descends(const struct processes *processes, pid_t pid, pid_t ancestor)
{
	for (size_t depth = 0; pid && pid != ancestor && depth <= processes->n; depth++)
		pid = parent_in(processes, pid);
	return pid == ancestor;
}

/* ---- signals ---- */

/* All in the cage that does not come from an interpreter. */
static int signal_all(const struct strangers *strangers, int signal)
{
	__attribute__((cleanup(processes_deinit))) struct processes processes = {0};
	int n = 0, r = processes_list(&processes);

	for (size_t i = 0; i < processes.n; i++) {
		if (is_spared(strangers, &processes, processes.all[i].pid))
			continue;
		(void)kill(processes.all[i].pid, signal);
		n++;
	}
	return r ? -1 : n;
}

/* The warden's children that are not interpreters. If the list is longer than the buffer, the rest is left to the
 * next call. The last number may then be cut off, and is not used. */
static int signal_children(const struct strangers *strangers, int signal)
{
	_cleanup_(fd_closep) int fresh = strangers->children < 0 ? children_open() : -1;
	char text[8192], *at = text, *end;
	ssize_t size = pread(fresh < 0 ? strangers->children : fresh, text, sizeof(text) - 1, 0);
	int n = 0;

	if (size < 0)
		return -1;
	text[size] = '\0';
	for (long pid; (pid = strtol(at, &end, 10)) > 0 && *end == ' '; at = end) {
		if (strangers->spared(strangers->userdata, (pid_t)pid))
			continue;
		(void)kill((pid_t)pid, signal);
		n++;
	}
	return n;
}

void strangers_kill_below(pid_t pid)
{
	__attribute__((cleanup(processes_deinit))) struct processes processes = {0};

	if (processes_list(&processes))
		return;
	for (size_t i = 0; i < processes.n; i++)
		if (processes.all[i].pid != pid && descends(&processes, processes.all[i].pid, pid))
			(void)kill(processes.all[i].pid, SIGKILL);
}

int strangers_kill(struct strangers *strangers)
{
	int n = signal_all(strangers, SIGKILL);

	return n < 0 ? signal_children(strangers, SIGKILL) : n;
}

void strangers_halt(struct strangers *strangers)
{
	if (strangers->apart && kill(-1, SIGSTOP) == 0)
		strangers->halted_ms = clock_ms();
}

void strangers_resume(struct strangers *strangers)
{
	__attribute__((cleanup(processes_deinit))) struct processes processes = {0};

	if (!strangers->halted_ms)
		return;
	strangers->halted_ms = 0;
	if (processes_list(&processes))
		(void)kill(-1, SIGCONT);
	for (size_t i = 0; i < processes.n; i++)
		if (!strangers->still(strangers->userdata, processes.all[i].pid))
			(void)kill(processes.all[i].pid, SIGCONT);
}

void strangers_spare(const struct strangers *strangers, pid_t pid)
{
	if (strangers->halted_ms)
		(void)kill(pid, SIGCONT);
}

bool strangers_wait_for_nobody(struct strangers *strangers)
{
	return signal_children(strangers, 0) != 0;
}

void strangers_init(struct strangers *strangers, bool (*spared)(const void *userdata, pid_t pid),
		    bool (*still)(const void *userdata, pid_t pid), const void *userdata)
{
	*strangers = (struct strangers){.children = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC),
					.spared = spared,
					.still = still,
					.userdata = userdata};
}

/* In a pid namespace of its own the warden cannot use the numbers of the host's /proc. The cage then has a /proc of
 * its own, or none. */
void strangers_settle(struct strangers *strangers, bool apart)
{
	strangers->apart = apart || getpid() == 1;
	if (getpid() == 1)
		strangers->children = fd_close(strangers->children);
}
