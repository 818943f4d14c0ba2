/* When a router has been silent for too long. */
#include "keeper/pulse.h"

#include "check.h"

static void test_silence(void)
{
	struct pulse pulse;
	uint64_t now = 5000;

	pulse_heard(&pulse, now);
	for (; now < 5000 + PULSE_SILENCE_MS; now += PULSE_BEAT_MS)
		CHECK(!pulse_silent(&pulse, now));
	CHECK(pulse_silent(&pulse, now));
	pulse_heard(&pulse, now);
	CHECK(!pulse_silent(&pulse, now + PULSE_BEAT_MS));
}

/* The keeper was stopped too. */
static void test_pause(void)
{
	struct pulse pulse;
	uint64_t now = 5000;

	pulse_heard(&pulse, now);
	now += 3600 * 1000;
	CHECK(!pulse_silent(&pulse, now));
	CHECK(!pulse_silent(&pulse, now + PULSE_BEAT_MS));
	for (int i = 0; i < PULSE_SILENCE_MS / PULSE_BEAT_MS; i++)
		now += PULSE_BEAT_MS, (void)pulse_silent(&pulse, now);
	CHECK(pulse_silent(&pulse, now + PULSE_BEAT_MS));
}

int main(void)
{
	test_silence();
	test_pause();
	return check_report();
}
