/* Making processes from the image of this one: wardens from the template, interpreters from the warden. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

/* A raw clone as a child of the caller's own parent, with @flags (namespaces) besides. No fork handlers run: the
 * process must have one thread. The state of libc is copied as it is; only the thread id that libc
 * remembers is corrected, by the kernel. Returns 0 in the child; in the caller its pid, with *pidfdp (may be
 * NULL) set to a descriptor that is close-on-exec, or to -1 if the kernel has none; or -errno. */
pid_t fork_sibling(unsigned long flags, int *pidfdp);

/* The same, but the child is born in the control group (version 2) whose directory is @group. -ENOSYS if the kernel
 * cannot do that. */
pid_t fork_sibling_into(int group, unsigned long flags, int *pidfdp);

/* The same as an own child, whose end no signal tells. waitpid needs __WALL for it. The process may have other
 * threads: the child does not have them, and what they held stays held there. */
pid_t fork_child(void);
