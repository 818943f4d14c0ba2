/* How soon a router that died is replaced. At once, unless it died too often; one that did not get ready waits
 * longer each time. */
#pragma once

#include "proto/base.h"

/* No more than so many deaths in so much time. */
#define THROTTLE_DEATHS 5
#define THROTTLE_MS 10000
/* The first and the longest pause after one that did not get ready. */
#define THROTTLE_PAUSE_MS 250
#define THROTTLE_PAUSE_MAX_MS 30000

struct throttle {
	uint64_t deaths[THROTTLE_DEATHS]; /* milliseconds, oldest first; 0 = none */
	uint64_t pause;
};

/* One died @now. Returns for how many milliseconds there shall be none. */
uint64_t throttle_died(struct throttle *throttle, uint64_t now, bool was_ready);
