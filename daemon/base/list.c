/* What a list does when its invariant is broken. The router that dies of it leaves nothing behind that the next one
 * would read wrongly, which cannot be said of a router that goes on with two lists fused. */
#include "list.h"

#include "log.h"

void list_broken(const char *why)
{
	log_error(NULL, "broken list: %s", why);
	abort();
}
