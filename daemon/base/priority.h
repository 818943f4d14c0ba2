/* The router's place among the processes of the host. */
#pragma once

/* Everybody waits for the router, and there may be many sessions that compute, each with as much of the processors
 * as it has if nothing is done about that: it comes before them from now on, as far as laird may do that (root),
 * and does not wait for the end of their turns (Linux 6.12). What cannot be had is done without. */
void priority_raise(void);
