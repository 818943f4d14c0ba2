/* A list whose invariant is broken ends the process. The next router can read what this one has written down. If
 * the router went on with two lists fused, it might write down nonsense. */
#include "list.h"

#include "log.h"

void list_broken(const char *why)
{
	log_error(NULL, "broken list: %s", why);
	abort();
}
