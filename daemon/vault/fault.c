/* Faults: the one that is asked for, and how often it was made. */
#include "fault.h"

#include "base/log.h"

#include <stdio.h>
#include <unistd.h>

static struct {
	volatile uint64_t *made;
	bool stall;
	char point[64], of[160];
	unsigned long long times; /* 0: always */
} fault;

bool fault_asked;

static bool order_parse(const char *order)
{
	char act[8] = "";

	snprintf(fault.of, sizeof(fault.of), "-");
	if (sscanf(order, "%7s %63s %159s %llu", act, fault.point, fault.of, &fault.times) < 2)
		return false;
	fault.stall = strcmp(act, "stall") == 0;
	return fault.stall || strcmp(act, "abort") == 0;
}

void fault_begin(volatile uint64_t made[static 2])
{
	const char *path = getenv("LAIR_FAULT");
	FILE *file = path ? fopen(path, "re") : NULL;
	uint64_t digest = 1;
	char order[256];

	if (!file)
		return;
	if (fgets(order, sizeof(order), file) && order_parse(order)) {
		for (const char *at = order; *at; at++)
			digest = digest * 31 + (uint8_t)*at;
		if (made[0] != digest)
			made[1] = 0;
		made[0] = digest;
		fault.made = made;
		fault_asked = true;
	}
	(void)fclose(file);
}

static void make(const char *name)
{
	++fault.made[1];
	log_error(NULL, "a fault is made, as %s asks for: %s", getenv("LAIR_FAULT"), name);
	while (fault.stall)
		(void)pause();
	abort();
}

void fault_meet(const char *group, const char *name, struct bytes of)
{
	char point[sizeof(fault.point)];

	if (fault.times > 0 && fault.made[1] >= fault.times)
		return;
	snprintf(point, sizeof(point), "%s.%s", group, name);
	if (strcmp(point, fault.point) == 0 && (strcmp(fault.of, "-") == 0 || bytes_is(of, fault.of)))
		make(point);
}
