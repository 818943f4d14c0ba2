/* A list whose invariant is broken ends the process. The next router can read what this one has written down. If
 * the router went on with two lists fused, it might write down nonsense. */
#include "list.h"

#include <stdio.h>
#include <stdlib.h>

void list_broken(const char *why)
{
	dprintf(STDERR_FILENO, "broken list: %s\n", why);
	abort();
}
