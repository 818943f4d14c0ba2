/* The warden: first process of a session's cage. It forks, signals and buries interpreters, and never runs user
 * code. */
#pragma once

#include "cage/cage.h"

/* In the clone that cage_clone made: enter the cage on @workspace and serve @control until it closes. Every other
 * descriptor above 2 is closed. Nothing that is passed is used after cage_enter but @control and @cage. */
_Noreturn void warden_run(struct cage *cage, const char *workspace, int control);
