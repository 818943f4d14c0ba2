/* Time for the programs of the bench. */
#pragma once

#include <time.h>

static inline double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static inline void pause_us(long us)
{
	struct timespec nap = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	if (us > 0)
		nanosleep(&nap, NULL);
}
