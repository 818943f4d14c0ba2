/* The scribes that the keeper has started: one for the audit log that is, and those of audit logs that were until
 * they have written what they had. */
#pragma once

#include "base/list.h"

#include <sys/types.h>

#define SCRIBE_FDS 3

struct scribes {
	struct list all;
};

void scribes_init(struct scribes *scribes);
/* Let go of all of them. */
void scribes_deinit(struct scribes *scribes);

/* One more, with these descriptors, which are its own whatever becomes of it. */
void scribes_add(struct scribes *scribes, int fds[static SCRIBE_FDS]);
/* Start those that are due, by the clock in milliseconds. Returns when the next one is, or UINT64_MAX. */
uint64_t scribes_start(struct scribes *scribes, uint64_t now);
/* False if it was none. Another one follows unless it has come to its end. */
bool scribes_reap(struct scribes *scribes, pid_t pid, int status, uint64_t now);
bool scribes_has(struct scribes *scribes, pid_t pid);
/* There is no more time: kill them, and say what is lost. */
void scribes_kill(struct scribes *scribes);
