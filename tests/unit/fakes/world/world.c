/* The simulated world: what all of it shares. */
#include "world.h"

struct world world;
struct totals totals;

static uint64_t chance_state;

void chance_begin(uint64_t seed, uint64_t step)
{
	chance_state = seed * 0x9e3779b97f4a7c15ULL + step * 0xd1342543de82ef95ULL + 1;
}

uint64_t chance(uint64_t below)
{
	uint64_t x = chance_state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return (x ^ (x >> 31)) % below;
}

void fail(const char *what, uint64_t request)
{
	if (!world.wrong[0])
		snprintf(world.wrong, sizeof(world.wrong), "%s (request %llu)", what, (unsigned long long)request);
}
