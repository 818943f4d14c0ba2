#include "descriptors.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>

/* Of the hard limit, for the keeper alone. A router has no fewer of its own than the keeper needs to start one, so
 * even a very low limit leaves enough. */
#define KEEPER_MAX 64
#define KEEPER_PART 8

/* What one takes at once, and what of the limit it leaves to the higher ranks. */
static const struct {
	unsigned takes, part, leaves_max;
} ranks[] = {
	[DESCRIPTORS_SESSION] = {.takes = 16, .part = 8, .leaves_max = 256},
	[DESCRIPTORS_CHECKPOINT] = {.takes = 2, .part = 16, .leaves_max = 64},
	[DESCRIPTORS_CONNECTION] = {.takes = 1, .part = 32, .leaves_max = 16},
};

void descriptors_limit(bool all)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max - (all ? 0 : MIN(limit.rlim_max / KEEPER_PART, (rlim_t)KEEPER_MAX));
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static unsigned count_free(unsigned first, unsigned n)
{
	struct pollfd numbers[64];
	unsigned found = 0;

	for (unsigned i = 0; i < n; i++)
		numbers[i] = (struct pollfd){.fd = (int)(first + i)};
	if (poll(numbers, n, 0) < 0)
		return 0;
	for (unsigned i = 0; i < n; i++)
		found += (numbers[i].revents & POLLNVAL) != 0;
	return found;
}

/* The kernel gives the lowest free number, so the highest are almost always free: one look is enough. */
static bool are_free(unsigned limit, unsigned wanted)
{
	unsigned found = 0;

	while (found < wanted && limit > 0) {
		unsigned n = MIN(limit, 64U);

		limit -= n;
		found += count_free(limit, n);
	}
	return found >= wanted;
}

bool descriptors_left(enum descriptors_rank rank)
{
	struct rlimit limit;
	unsigned n;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return true;
	n = (unsigned)MIN(limit.rlim_cur, (rlim_t)INT32_MAX);
	return are_free(n, ranks[rank].takes + MIN(n / ranks[rank].part, ranks[rank].leaves_max));
}

const char *descriptors_explain(char text[static DESCRIPTORS_TEXT_SIZE])
{
	struct rlimit limit = {0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	snprintf(text, DESCRIPTORS_TEXT_SIZE,
		 "%s: laird's hard limit is %" PRIu64
		 ", and what is left keeps its sessions alive; end sessions, or start laird with a higher one "
		 "(LimitNOFILE of its unit, or ulimit -n)",
		 strerror(EMFILE), (uint64_t)limit.rlim_max);
	return text;
}
