/* Between two cells: the session's event loop goes on. */
#pragma once

#include <stdbool.h>

/* If anything waits in the loop, run the loop until there is a message. When a message has waited for some seconds,
 * the task that keeps the loop busy is interrupted. */
void idle(void);
/* Whether anything waits in it. */
bool idle_has_work(void);
