/* The clocks, in the units that their readers count in. */
#pragma once

#include "proto/base.h"

#include <time.h>

/* Nanoseconds of @clock. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* For deadlines: these never go back. */
static inline uint64_t clock_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

static inline double clock_seconds(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}

/* For people and other programs: seconds since the epoch. */
static inline double clock_date(void)
{
	return (double)clock_ns(CLOCK_REALTIME) / 1e9;
}
