/* Among a thousand processes that a cell has started the warden must come to its turn, or nobody stops them. A
 * process that asks for short turns has them soon. Kernels before 6.12 ignore the wish; there one that has slept
 * goes first. */
#include "turns.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TURN_NS 100000

void turns_shorten(void)
{
	struct sched_attr wanted = {
		.size = sizeof(wanted), .sched_flags = SCHED_FLAG_RESET_ON_FORK, .sched_runtime = TURN_NS};

	(void)!syscall(SYS_sched_setattr, 0, &wanted, 0);
}
