/* How long the next cell has to wait, so that the files of the one before are not its own. */
#include "artifacts.h"
#include "check.h"

#define MS 1000000

static bool too_soon(long newest_s, long newest_ms, long now_s, long now_ms)
{
	return artifacts_too_soon((struct timespec){.tv_sec = newest_s, .tv_nsec = newest_ms * MS},
				  (struct timespec){.tv_sec = now_s, .tv_nsec = now_ms * MS});
}

int main(void)
{
	CHECK(!too_soon(0, 0, 100, 0));
	CHECK(!too_soon(100, 1, 100, 4));
	CHECK(too_soon(100, 4, 100, 4));
	CHECK(too_soon(100, 6, 100, 4));
	/* A second has begun, and file times are still in the one before. */
	CHECK(too_soon(101, 1, 100, 998));
	CHECK(!too_soon(100, 998, 101, 1));
	/* The clock was set back. */
	CHECK(too_soon(100, 900, 100, 0));
	CHECK(too_soon(101, 3, 100, 4));
	CHECK(!too_soon(101, 4, 100, 4));
	CHECK(!too_soon(103, 0, 100, 4));
	return check_report();
}
