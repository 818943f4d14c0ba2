/* The warden: the first process of a session's cage. It forks, signals and reaps interpreters, and never runs
 * user code. */
#pragma once

#include "cage/cage.h"

/* In the clone that cage_clone made: enter the cage on @workspace and serve @control until it closes. Every
 * other descriptor above 2 is closed. After cage_enter only @control and @cage are used. @reason: why there can be
 * no cage; NULL: there can. */
_Noreturn void warden_run(struct cage *cage, const char *workspace, int control, const char *reason);
