#include "fakes/clock.h"

#include "proto/event.h"

uint64_t fake_now = 1000000;

uint64_t event_now(void)
{
	return fake_now;
}

uint64_t event_slept(void)
{
	return 0;
}
