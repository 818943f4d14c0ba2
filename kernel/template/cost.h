/* How much time each layer of the cage adds to the start of a session. */
#pragma once

/* All of `lair-kernel --cost`: build this host's strongest cage many times, and write the time of each part to
 * stdout, one line each, in microseconds. Returns an exit status. */
int cost_run(void);
