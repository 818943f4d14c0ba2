/* How soon a dead router is replaced: at once, unless routers died too often. If it was not ready yet, the pause
 * grows each time. */
#pragma once

#include "proto/base.h"

/* At most so many deaths in so much time. */
#define THROTTLE_DEATHS 5
#define THROTTLE_MS 10000
/* The first and the longest pause after a router that was not ready. */
#define THROTTLE_PAUSE_MS 250
#define THROTTLE_PAUSE_MAX_MS 30000

struct throttle {
	uint64_t deaths[THROTTLE_DEATHS]; /* milliseconds, oldest first; 0 = none */
	uint64_t pause;
};

/* A router died @now. Returns how many milliseconds to wait before the next. */
uint64_t throttle_died(struct throttle *throttle, uint64_t now, bool was_ready);
