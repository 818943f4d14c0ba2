/* Making processes from the image of this one. fork() cannot make a sibling, since only clone takes
 * CLONE_PARENT. glibc's clone() cannot either, since it needs a stack; so it is the raw system call. For a
 * process of one thread, glibc's fork would only have to correct the cached thread id. The kernel does that,
 * too, if it is told the address, which it knows and tells us (PR_GET_TID_ADDRESS). */
#include "fork.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif

static long clone_raw(unsigned long flags, int *pidfdp, int *tid)
{
	/* On x86-64 the last two arguments have the other order. */
#ifdef __x86_64__
	return syscall(SYS_clone, flags, NULL, pidfdp, tid, 0);
#else
	return syscall(SYS_clone, flags, NULL, pidfdp, 0, tid);
#endif
}

pid_t fork_sibling(unsigned long flags, int *pidfdp)
{
	int *tid = NULL;
	long pid;

	flags |= CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
	if (pidfdp) {
		flags |= CLONE_PIDFD;
		*pidfdp = -1; /* kernels before 5.2 ignore CLONE_PIDFD and do not set it */
	}
	if (prctl(PR_GET_TID_ADDRESS, &tid) < 0)
		return -errno;
	pid = clone_raw(flags, pidfdp, tid);
	return pid < 0 ? -errno : (pid_t)pid;
}

pid_t fork_child(void)
{
	int *tid = NULL;
	long pid;

	if (prctl(PR_GET_TID_ADDRESS, &tid) < 0)
		return -errno;
	pid = clone_raw(CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID, NULL, tid);
	return pid < 0 ? -errno : (pid_t)pid;
}

/* struct clone_args of <linux/sched.h>. Older headers lack its last member. */
struct clone_into {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size,
		cgroup;
};

pid_t fork_sibling_into(int group, unsigned long flags, int *pidfdp)
{
	struct clone_into arguments = {
		.flags = flags | CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_INTO_CGROUP,
		.cgroup = (uint64_t)group,
	};
	int *tid = NULL;
	long pid;

	if (pidfdp) {
		arguments.flags |= CLONE_PIDFD;
		arguments.pidfd = (uintptr_t)pidfdp;
		*pidfdp = -1;
	}
	if (prctl(PR_GET_TID_ADDRESS, &tid) < 0)
		return -errno;
	arguments.child_tid = (uintptr_t)tid;
	pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
	if (pid >= 0)
		return (pid_t)pid;
	if (pidfdp)
		*pidfdp = -1; /* clone3 may fail after it has set this */
	/* E2BIG: kernels before 5.7 do not know the last member. ENOSYS: kernels before 5.3 lack clone3. EPERM:
	 * some containers refuse it. */
	return errno == E2BIG || errno == EPERM ? -ENOSYS : -errno;
}
