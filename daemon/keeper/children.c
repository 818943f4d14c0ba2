/* The keeper's children but for the router: whatever ends is waited for, whatever a session has left behind is
 * killed, and at the end all of it. */
#include "state.h"

#include "base/log.h"
#include "cgroup/cgroup.h"
#include "orphan.h"

#include "proto/clock.h"

#include <poll.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define KILL_PAUSE_MS 20
#define REAP_MAX 1000

/* The cause of a child's death is logged unless we or the router killed it. */
static void child_ended(pid_t pid, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL && WTERMSIG(status) != SIGTERM)
		log_warn(NULL, "process %d was killed by signal %d (%s)", (int)pid, WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
}

/* Kill the children that are @such, but never one that removes a tree. False if there
 * was none. */
static bool children_kill(struct keeper *keeper, bool (*such)(pid_t pid))
{
	FILE *children = fopen("/proc/thread-self/children", "re");
	bool any = false;
	int pid;

	if (!children) {
		/* A kernel without the list of children: they die with us. */
		log_warn(NULL, "cannot list the processes that are left: %s", strerror(errno));
		return false;
	}
	while (fscanf(children, "%d", &pid) == 1) {
		if (pid == keeper->router || removals_has(&keeper->removals, pid) || !such(pid))
			continue;
		any = true;
		(void)kill(pid, SIGKILL);
	}
	(void)fclose(children);
	return any;
}

/* Only so many at a time, because a session's orphans may come and go without end. */
void keeper_reap(struct keeper *keeper)
{
	int status;
	pid_t pid;

	for (int i = 0; i < REAP_MAX && (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0; i++) {
		if (pid == keeper->router) {
			keeper_lost_router(keeper, status);
		} else if (!removals_reap(&keeper->removals, pid, status)) {
			child_ended(pid, status);
			keeper->orphaned = true;
		}
	}
}

void keeper_kill_orphans(struct keeper *keeper)
{
	bool any;

	if (!keeper->orphaned)
		return;
	any = children_kill(keeper, orphan_is);
	if (any && !keeper->killing_since)
		log_warn(NULL, "something has outlived its session and is killed");
	if (!any || !keeper->killing_since)
		keeper->killing_since = any ? clock_ms() : 0;
	keeper->orphaned = any;
	keeper_reap(keeper);
}

int keeper_signal(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	return read(keeper->signals, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

/* ---- the end ---- */

static bool any_child(pid_t pid)
{
	return true;
}

/* The children of the killed become ours, so it takes one round for each generation. */
static void children_end(struct keeper *keeper)
{
	uint64_t deadline = clock_ms() + KILL_LIMIT_MS;

	while (children_kill(keeper, any_child)) {
		struct pollfd ready = {.fd = keeper->signals, .events = POLLIN};

		if (clock_ms() > deadline) {
			log_error(NULL, "not everything could be killed");
			return;
		}
		(void)poll(&ready, 1, KILL_PAUSE_MS);
		(void)keeper_signal(keeper);
		keeper_reap(keeper);
	}
}

/* After a second order to stop, the next start removes the rest of them. */
static void removals_end(struct keeper *keeper)
{
	int signal = 0;

	while (!list_empty(&keeper->removals.trees) && signal != SIGTERM && signal != SIGINT) {
		struct pollfd ready = {.fd = keeper->signals, .events = POLLIN};

		signal = poll(&ready, 1, -1) > 0 ? keeper_signal(keeper) : 0;
		keeper_reap(keeper);
	}
}

void keeper_end_children(struct keeper *keeper)
{
	children_end(keeper);
	cgroups_erase(keeper->instance.socket);
	removals_end(keeper);
}
