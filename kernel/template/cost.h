/* What each layer of the cage adds to the start of a session. */
#pragma once

/* The whole of `lair-kernel --cost`: build this host's strongest cage many times over, and write what each part of
 * it took to stdout, one line each, in microseconds. Returns an exit status. */
int cost_run(void);
