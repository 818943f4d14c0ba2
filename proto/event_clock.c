/* The clock of the loop. */
#include "event.h"

#include "clock.h"

uint64_t event_now(void)
{
	return clock_ns(CLOCK_BOOTTIME) / 1000;
}

uint64_t event_slept(void)
{
	uint64_t awake = clock_ns(CLOCK_MONOTONIC) / 1000, all = event_now();

	return MAX(all, awake) - awake;
}
