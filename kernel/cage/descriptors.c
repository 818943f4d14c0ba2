/* Descriptors: a session inherits what its warden was told to keep, and nothing by accident. */
#include "steps.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static void close_span(unsigned first, unsigned last)
{
	struct rlimit limit;

	if (first > last || syscall(SYS_close_range, first, last, 0U) == 0)
		return;
	/* Kernels before 5.9. No descriptor is above the limit it was opened under. */
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max > 65536)
		limit.rlim_max = 65536;
	for (unsigned fd = first; fd <= last && fd < limit.rlim_max; fd++)
		(void)close((int)fd);
}

/* The next kept descriptor above @above, or -1. */
static int keep_next(const int *keep, int above)
{
	int next = -1;

	for (; keep && *keep >= 0; keep++)
		if (*keep > above && (next < 0 || *keep < next))
			next = *keep;
	return next;
}

int descriptors_close(struct cage *cage, const int *keep, struct cage_report *report)
{
	int above = STDERR_FILENO, next, null;

	(void)cage;
	while ((next = keep_next(keep, above)) >= 0) {
		close_span((unsigned)above + 1, (unsigned)next - 1);
		above = next;
	}
	close_span((unsigned)above + 1, ~0U);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return cage_fail(report, errno, "/dev/null");
	fd_close(null);
	return 0;
}
