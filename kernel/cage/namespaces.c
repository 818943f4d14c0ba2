/* Namespaces: the warden is cloned straight into them, as pid 1 of its own. Only somebody outside can set its
 * identity map, so the template does: one uid and one gid, mapped to themselves. The warden waits for that, so
 * none of its code runs without the map. */
#include "steps.h"

#include "base/fork.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

const unsigned long namespaces_all =
	CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

static int file_write(const char *path, const char *text)
{
	_cleanup_(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t size = strlen(text);

	if (fd < 0)
		return -errno;
	return write(fd, text, size) == (ssize_t)size ? 0 : -errno;
}

static int map_write(pid_t pid, const char *map, unsigned id)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, map);
	snprintf(text, sizeof(text), "%u %u 1\n", id, id);
	return file_write(path, text);
}

static int maps_write(pid_t pid, uid_t uid)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/setgroups", (int)pid);
	r = file_write(path, "deny\n");
	if (!r)
		r = map_write(pid, "gid_map", uid ? uid : getegid());
	if (!r)
		r = map_write(pid, "uid_map", uid ? uid : geteuid());
	return r;
}

/* If the kernel can, the warden is born in its control group. The warden gets a copy of cage->birthplace, which
 * therefore is set before the clone: -1 says that the warden is in the group. */
static pid_t clone_sibling(struct cage *cage, unsigned long flags, int *pidfdp)
{
	int group = cage->birthplace;
	pid_t pid;

	if (group >= 0) {
		cage->birthplace = -1;
		pid = fork_sibling_into(group, flags, pidfdp);
		if (pid != -ENOSYS)
			return pid;
		cage->birthplace = group;
	}
	return fork_sibling(flags, pidfdp);
}

static pid_t clone_one(struct cage *cage, bool sibling, int *pidfdp)
{
	unsigned long flags = cage->namespaces;
	long pid;

	if (sibling)
		return clone_sibling(cage, flags, pidfdp);
	/* For the probe: a child of this process, which makes system calls and exits. */
	pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0);
	return pid < 0 ? -errno : (pid_t)pid;
}

/* In the child: wait for a byte, which the template writes when it has written the maps. If it failed, it only
 * closes the pipe. */
static void go_await(int pipe_fds[2])
{
	char go;

	fd_close(pipe_fds[1]);
	if (read(pipe_fds[0], &go, 1) != 1)
		_exit(EXIT_FAILURE);
	fd_close(pipe_fds[0]);
}

pid_t namespaces_clone(struct cage *cage, bool sibling, int *pidfdp)
{
	int pipe_fds[2], r = 0;
	pid_t pid;

	if (!(cage->namespaces & CLONE_NEWUSER))
		return clone_one(cage, sibling, pidfdp);
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	pid = clone_one(cage, sibling, pidfdp);
	if (pid == 0) {
		go_await(pipe_fds);
		return 0;
	}
	fd_close(pipe_fds[0]);
	if (pid > 0)
		r = maps_write(pid, cage->uid);
	if (pid > 0 && !r && write(pipe_fds[1], "", 1) != 1)
		r = -errno;
	fd_close(pipe_fds[1]);
	if (r && pidfdp)
		*pidfdp = fd_close(*pidfdp);
	return r ? r : pid;
}

/* The filter of a container may keep the call from everybody who lacks CAP_SYS_ADMIN outside of all namespaces.
 * Then the name stays that of the host, which a session can read and not change, and the guard is not reported. */
static int name_set(const struct cage *cage, struct cage_report *report)
{
	if (!(cage->namespaces & CLONE_NEWUTS))
		return 0;
	if (sethostname("lair", 4) == 0 && setdomainname("", 0) == 0)
		cage_guard(report, "utsns");
	else if (errno != EPERM)
		return cage_fail(report, errno, "cannot set the host name");
	return 0;
}

/* The rest of the work, inside the namespaces. */
int namespaces_enter(struct cage *cage, struct cage_report *report)
{
	static const struct {
		unsigned long flag;
		const char *name;
	} names[] = {
		{CLONE_NEWUSER, "userns"}, {CLONE_NEWPID, "pidns"}, {CLONE_NEWNS, "mountns"},
		{CLONE_NEWNET, "netns"},   {CLONE_NEWIPC, "ipcns"}, {CLONE_NEWCGROUP, "cgroupns"},
	};

	int r;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (cage->namespaces & names[i].flag)
			cage_guard(report, names[i].name);
	r = name_set(cage, report);
	if (r)
		return r;
	/* If the host runs out of memory, a warden should die early. If a group bounds its memory, it counts like
	 * laird's processes instead. laird raises this number for interpreters. Later steps forbid to write it. */
	(void)file_write("/proc/self/oom_score_adj", cage->memory_group ? "0" : "500");
	return 0;
}
