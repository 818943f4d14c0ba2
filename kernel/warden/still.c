/* A stop takes effect when the process leaves the kernel, so it is asked for until it is seen. A descendant is
 * stopped before its own are looked for: it makes no more then. Those that have lost their parent are the sweep's.
 */
#include "still.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define DEPTH_MAX 16

static bool kill_below(pid_t pid, unsigned depth);

static bool kill_tree(pid_t pid, unsigned depth)
{
	(void)kill(pid, SIGSTOP);
	if (depth < DEPTH_MAX)
		(void)kill_below(pid, depth + 1);
	return kill(pid, SIGKILL) == 0;
}

/* The children of one thread. */
static bool kill_listed(int tasks, const char *thread, unsigned depth)
{
	_cleanup_(fd_closep) int fd = -1;
	char text[4096], *at = text, *end;
	bool any = false;
	ssize_t size;

	snprintf(text, sizeof(text), "%s/children", thread);
	fd = openat(tasks, text, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[MAX(size, 0)] = '\0';
	for (long pid; (pid = strtol(at, &end, 10)) > 0 && *end == ' '; at = end)
		any |= kill_tree((pid_t)pid, depth);
	return any;
}

/* Whether there was any. Without a /proc of the cage's own nobody knows. */
static bool kill_below(pid_t pid, unsigned depth)
{
	const struct dirent *entry;
	bool any = false;
	char path[32];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			any |= kill_listed(dirfd(tasks), entry->d_name, depth);
	if (tasks)
		closedir(tasks);
	return any;
}

static bool is_stopped(pid_t pid)
{
	siginfo_t child = {.si_pid = 0};

	return waitid(P_PID, (id_t)pid, &child, WSTOPPED | WNOHANG | WNOWAIT) < 0 || child.si_pid == pid;
}

bool still_stop(pid_t pid)
{
	bool any;

	(void)kill(pid, SIGSTOP);
	any = kill_below(pid, 0);
	return is_stopped(pid) && !any;
}

void still_end(pid_t pid)
{
	(void)kill(pid, SIGCONT);
}
