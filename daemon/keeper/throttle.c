/* The last deaths, and a pause that doubles while nothing gets ready. */
#include "throttle.h"

uint64_t throttle_died(struct throttle *throttle, uint64_t now, bool was_ready)
{
	uint64_t oldest = throttle->deaths[0], pause = 0;

	memmove(throttle->deaths, throttle->deaths + 1, sizeof(throttle->deaths) - sizeof(throttle->deaths[0]));
	throttle->deaths[THROTTLE_DEATHS - 1] = now;
	if (was_ready)
		throttle->pause = 0;
	else
		throttle->pause =
			MIN(MAX(2 * throttle->pause, (uint64_t)THROTTLE_PAUSE_MS), (uint64_t)THROTTLE_PAUSE_MAX_MS);
	if (oldest > 0 && now < oldest + THROTTLE_MS)
		pause = oldest + THROTTLE_MS - now;
	return MAX(pause, throttle->pause);
}
