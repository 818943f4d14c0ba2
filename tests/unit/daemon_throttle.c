/* When the next router starts. */
#include "keeper/throttle.h"

#include "check.h"

static void test_bursts(void)
{
	struct throttle throttle = {0};

	for (uint64_t i = 0; i < THROTTLE_DEATHS; i++)
		CHECK(throttle_died(&throttle, 1000 + i, true) == 0);
	CHECK(throttle_died(&throttle, 2000, true) == THROTTLE_MS - 1000);
	CHECK(throttle_died(&throttle, 1001 + THROTTLE_MS, true) == 0);
}

static void test_rare_deaths(void)
{
	struct throttle throttle = {0};

	for (uint64_t i = 1; i < 100; i++)
		CHECK(throttle_died(&throttle, i * THROTTLE_MS / THROTTLE_DEATHS, true) == 0);
}

static void test_never_ready(void)
{
	struct throttle throttle = {0};
	uint64_t now = 1, pause = THROTTLE_PAUSE_MS;

	for (int i = 0; i < 20; i++) {
		uint64_t got = throttle_died(&throttle, now, false);

		CHECK(got >= pause);
		now += got;
		pause = MIN(2 * pause, (uint64_t)THROTTLE_PAUSE_MAX_MS);
	}
	now += THROTTLE_MS;
	CHECK(throttle_died(&throttle, now, true) == 0);
	CHECK(throttle_died(&throttle, now, false) == THROTTLE_PAUSE_MS);
}

int main(void)
{
	test_bursts();
	test_rare_deaths();
	test_never_ready();
	return check_report();
}
