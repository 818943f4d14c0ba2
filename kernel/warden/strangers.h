/* The processes of a cage that are neither interpreters nor the warden: what cells have started. They are hostile:
 * they fork faster than they are killed, ignore signals, and wake each other. So the whole cage is halted before
 * they are killed. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

struct strangers {
	int children;	    /* the list of the warden's children in the host's /proc; -1: the cage's is used */
	bool apart;	    /* a signal to all reaches this cage and nothing else */
	uint64_t halted_ms; /* since then; 0: not halted */
	bool (*spared)(const void *userdata, pid_t pid); /* it is an interpreter */
	bool (*still)(const void *userdata, pid_t pid);	 /* and must not run for now */
	const void *userdata;
};

/* Before the cage hides the host's /proc. */
void strangers_init(struct strangers *strangers, bool (*spared)(const void *userdata, pid_t pid),
		    bool (*still)(const void *userdata, pid_t pid), const void *userdata);
/* In the cage. @apart: its processes have a host uid that nothing else has. */
void strangers_settle(struct strangers *strangers, bool apart);

/* Stop all processes of the cage at once, interpreters too, if that reaches no others: none forks, or wakes
 * another. */
void strangers_halt(struct strangers *strangers);
/* Let them go on: all but those that are still, or one interpreter while the others are dealt with. */
void strangers_resume(struct strangers *strangers);
void strangers_spare(const struct strangers *strangers, pid_t pid);

/* Send all that descends from the interpreter @pid SIGKILL, as far as it can be listed: such a process can be woken
 * after a halt, but not saved. */
void strangers_kill_below(pid_t pid);
/* Send strangers SIGKILL: all that can be listed, at least those that nobody else waits for. Returns how many there
 * were, or -1 if they cannot be listed. */
int strangers_kill(struct strangers *strangers);
/* Whether processes may live that no interpreter waits for. */
bool strangers_wait_for_nobody(struct strangers *strangers);
