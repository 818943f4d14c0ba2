/* Only time in which we ran ourselves counts. If somebody stops all of laird for an hour, the router is not to
 * blame. */
#include "pulse.h"

void pulse_heard(struct pulse *pulse, uint64_t now)
{
	pulse->heard = pulse->looked = now;
}

bool pulse_silent(struct pulse *pulse, uint64_t now)
{
	uint64_t gap = now - pulse->looked;

	if (gap > 2 * PULSE_BEAT_MS)
		pulse->heard += gap;
	pulse->looked = now;
	return now - pulse->heard >= PULSE_SILENCE_MS;
}
