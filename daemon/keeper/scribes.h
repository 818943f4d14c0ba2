/* The scribes that the keeper has started: one for the present audit log, and those of earlier audit logs until
 * they have written everything. */
#pragma once

#include "base/list.h"

#include <sys/types.h>

#define SCRIBE_FDS 2

struct scribes {
	struct list all;
};

void scribes_init(struct scribes *scribes);
/* Close the descriptors of all. */
void scribes_deinit(struct scribes *scribes);

/* Add a scribe, which owns these descriptors from now on, also if it fails. */
void scribes_add(struct scribes *scribes, int fds[static SCRIBE_FDS]);
/* Start those that are due, by the clock in milliseconds. Returns when the next one is due, or UINT64_MAX. */
uint64_t scribes_start(struct scribes *scribes, uint64_t now);
/* The child @pid has ended. False if it was no scribe. Another one follows unless it has come to its end. */
bool scribes_reap(struct scribes *scribes, pid_t pid, int status, uint64_t now);
bool scribes_has(struct scribes *scribes, pid_t pid);
/* There is no more time: kill them, and log how many lines are lost. */
void scribes_kill(struct scribes *scribes);
