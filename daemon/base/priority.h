/* The priority of the router. */
#pragma once

/* Everybody waits for the router, and many sessions may compute at the same time. So from now on the router
 * comes before them, as far as laird may do that (root), and does not wait for the end of their turns (Linux
 * 6.12). If the kernel refuses, we go on without. */
void priority_raise(void);
