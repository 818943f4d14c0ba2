/* Between two cells: the session's event loop goes on. */
#pragma once

/* Until there is a message, if anything waits in the loop. Whatever does not give way is interrupted when a message
 * has waited for some seconds. */
void idle(void);
