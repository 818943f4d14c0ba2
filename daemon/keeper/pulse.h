/* Whether the router still goes round: it says so at every beat. */
#pragma once

#include "proto/base.h"

#define PULSE_BEAT_MS 3000
#define PULSE_SILENCE_MS 12000

struct pulse {
	uint64_t heard, looked; /* milliseconds */
};

/* It said so, or has just been started. */
void pulse_heard(struct pulse *pulse, uint64_t now);
/* To be asked at every beat at least. Whether it has been silent for too long. */
bool pulse_silent(struct pulse *pulse, uint64_t now);
