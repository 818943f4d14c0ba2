/* sched_setattr(2) sets the priority among processes. Some kernels divide the processors between sessions of
 * terminals first; there a file of /proc sets that priority. */
#include "priority.h"

#include "proto/base.h"

#include <fcntl.h>
#include <linux/sched/types.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* By so much before what laird was started as. */
#define RAISE 10
/* How long a turn on a processor is: who asks for a short one has it soon. */
#define TURN_NS 100000

static void autogroup_raise(void)
{
	_cleanup_(fd_closep) int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	char text[16];
	int size = snprintf(text, sizeof(text), "%d", -RAISE);

	if (fd >= 0)
		(void)!write(fd, text, (size_t)size);
}

void priority_raise(void)
{
	int nice = getpriority(PRIO_PROCESS, 0);
	struct sched_attr wanted = {
		.size = sizeof(wanted), .sched_nice = MAX(nice - RAISE, PRIO_MIN), .sched_runtime = TURN_NS};

	if (syscall(SYS_sched_setattr, 0, &wanted, 0) < 0) {
		wanted.sched_nice = nice;
		(void)!syscall(SYS_sched_setattr, 0, &wanted, 0);
	}
	autogroup_raise();
}
