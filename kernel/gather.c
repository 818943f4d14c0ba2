/* Private memory of the template, as far as it fills large pages. A page that a fork writes to is still copied by
 * itself: the kernel splits what it lies in, in that process alone. */
#include "gather.h"

#include "proto/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif
#define LARGE ((uintptr_t)2 << 20)

static void gather(uintptr_t start, uintptr_t end)
{
	start = (start + LARGE - 1) & ~(LARGE - 1);
	end &= ~(LARGE - 1);
	/* One at a time: the kernel gives up a range at the first that it cannot do. */
	for (; start < end; start += LARGE)
		(void)madvise((void *)start, LARGE, MADV_COLLAPSE); // NOLINT(performance-no-int-to-ptr)
}

void gather_memory(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], mode[5], name[8];

	while (maps && fgets(line, sizeof(line), maps)) {
		uintptr_t start, end;
		unsigned long inode;
		int n = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*s %lu %7s", &start, &end, mode, &inode,
			       name);

		if (n < 4 || strcmp(mode, "rw-p") || inode || (n == 5 && strcmp(name, "[heap]")))
			continue;
		gather(start, end);
	}
	if (maps)
		(void)fclose(maps);
}
