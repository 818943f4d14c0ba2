/* The user of a connection's client, if it is on this machine. TCP does not say who that is, but the kernel knows
 * the socket at the other end, and its owner. Anybody may connect to a port of loopback; a Unix socket has
 * permissions. */
#pragma once

#include <stdbool.h>

/* The descriptor to ask with; or -errno if this kernel does not answer. */
int local_open(void);
/* Whether the other end of @fd is a socket of our own user, or of root. False, too, if it has been closed
 * meanwhile: then nobody knows whose it was. */
bool local_is_ours(int local, int fd);
