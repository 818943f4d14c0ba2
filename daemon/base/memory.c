/* Memory of a process tree, from /proc/PID/statm, which anybody may read. Forks share nearly all their pages, so
 * a sum of resident pages would count the template many times. Only the pages beyond the template's are the
 * session's own. A frozen interpreter would count the session once more, so it is left out here; its own memory
 * is measured elsewhere. */
#include "memory.h"

#include <fcntl.h>
#include <stdio.h>

#define PROCESSES_MAX 64

static ssize_t file_read(char *buffer, size_t size, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buffer, size - 1);

	fd_close(fd);
	buffer[MAX(n, 0)] = '\0';
	return n;
}

uint64_t memory_of_process(pid_t pid)
{
	unsigned long total, resident, shared;
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (file_read(text, sizeof(text), path) <= 0)
		return 0;
	if (sscanf(text, "%lu %lu %lu", &total, &resident, &shared) != 3 || shared > resident)
		return 0;
	return (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The kernel has this name for it. If a cell takes the name, it only hides memory from its own session's number.
 */
static bool is_frozen(pid_t pid)
{
	char path[64], name[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	return file_read(name, sizeof(name), path) > 0 && strcmp(name, "lair-frozen\n") == 0;
}

struct tree {
	uint64_t baseline, memory, ticks, tasks;
	unsigned budget;
};

/* Clock ticks that a process and those it waited for have run for, and its threads. A process chooses its own name,
 * which may hold any character; it ends with the last parenthesis. */
static void tree_add(struct tree *tree, pid_t pid)
{
	unsigned long ticks[4] = {0}, threads = 0;
	char path[64], text[1024], *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read(text, sizeof(text), path) <= 0)
		return;
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu %*d %*d %lu",
			   &ticks[0], &ticks[1], &ticks[2], &ticks[3], &threads) != 5)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(ticks); i++)
		tree->ticks += ticks[i];
	tree->tasks += threads;
}

static void tree_walk(struct tree *tree, pid_t pid)
{
	char path[64], text[1024], *at = text, *end;
	uint64_t own = memory_of_process(pid);

	tree->memory += own > tree->baseline ? own - tree->baseline : 0;
	tree_add(tree, pid);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (file_read(text, sizeof(text), path) <= 0)
		return;
	for (long child = strtol(at, &end, 10); end != at && tree->budget > 0; child = strtol(at, &end, 10)) {
		at = end;
		if (!is_frozen((pid_t)child)) {
			tree->budget--;
			tree_walk(tree, (pid_t)child);
		}
	}
}

struct usage usage_of_tree(pid_t pid, uint64_t baseline)
{
	struct tree tree = {.baseline = baseline, .budget = PROCESSES_MAX};

	if (pid > 0)
		tree_walk(&tree, pid);
	return (struct usage){
		.memory = tree.memory,
		.cpu = (double)tree.ticks / (double)sysconf(_SC_CLK_TCK),
		.tasks = tree.tasks > 0 ? tree.tasks - 1 : 0,
	};
}
