/* Who may connect. libzmq accepts connections by itself, in a thread of its own, and ends the process when there
 * are no descriptors left; so accept4() is ours in this program, and what libzmq gets from it has been looked at.
 */
#pragma once

#include "proto/base.h"

/* Before there are clients. @keeper: whoever descends from it is in a cage, and refused. */
void admission_begin(pid_t keeper);
/* How many connections one user may have; all together never take more than half of the descriptors. */
void admission_limit(uint64_t per_user);

/* How many have been refused so far, and why the last one was. Static. */
uint64_t admission_refused(const char **whyp);
