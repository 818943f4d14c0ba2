/* The pulse of the router: it tells at every beat that its loop turns. */
#pragma once

#include "proto/base.h"

#define PULSE_BEAT_MS 3000
#define PULSE_SILENCE_MS 12000

struct pulse {
	uint64_t heard, looked; /* milliseconds */
};

/* The router has said so, or has just been started. */
void pulse_heard(struct pulse *pulse, uint64_t now);
/* Call it at every beat at least. Whether the router has been silent for too long. */
bool pulse_silent(struct pulse *pulse, uint64_t now);
