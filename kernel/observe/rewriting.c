/* The kernel does not tell copied pages from new ones. So their number is bounded in two ways: by the faults, and
 * by how much of what was shared is shared no longer. The second takes a walk over all pages, which is only made if
 * the faults took much longer than it will. Without /proc nothing is found. */
#include "rewriting.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

#define LEAST (64ULL << 20)
/* A fault takes a hundred times as long as a look at a page. */
#define LEAST_PART 16
#define PAGE 4096ULL

/* What one may take at most, where the memory of a virtual machine comes from its host. */
#define FAULT_US 25

static struct {
	uint64_t shared; /* of what was shared with the copy, what still is; 0: too little to matter */
	uint64_t faults, kernel_us, user_us;
	uint64_t began; /* the cell */
} self;

static uint64_t us_of(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

/* A text file of /proc, as a string. */
static bool file_read(const char *path, char *text, size_t size)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	text[MAX(n, 0)] = '\0';
	return n > 0;
}

/* Memory that belongs to no file. */
static uint64_t anonymous(void)
{
	uint64_t resident, of_files;
	char text[256], *end;

	if (!file_read("/proc/self/statm", text, sizeof(text)))
		return 0;
	(void)strtoull(text, &end, 10);
	resident = strtoull(end, &end, 10);
	of_files = strtoull(end, NULL, 10);
	return resident > of_files ? (resident - of_files) * PAGE : 0;
}

static uint64_t field_of(const char *text, const char *name)
{
	const char *found = strstr(text, name);

	return found ? strtoull(found + strlen(name), NULL, 10) << 10 : 0;
}

static uint64_t still_shared(void)
{
	uint64_t all, own;
	char text[4096];

	if (!file_read("/proc/self/smaps_rollup", text, sizeof(text)))
		return self.shared;
	all = field_of(text, "Anonymous:");
	own = field_of(text, "Private_Dirty:");
	return all > own ? all - own : 0;
}

static void note(const struct rusage *usage)
{
	self.faults = (uint64_t)usage->ru_minflt;
	self.kernel_us = us_of(usage->ru_stime);
	self.user_us = us_of(usage->ru_utime);
}

/* How long @faults may have taken. A processor that is taken away from a virtual machine does not count as the
 * kernel's time, though it is part of it. */
static uint64_t us_since(const struct rusage *usage, uint64_t faults)
{
	uint64_t all = (clock_ns(CLOCK_MONOTONIC) - self.began) / 1000,
		 code = us_of(usage->ru_utime) - self.user_us;
	uint64_t waited = MIN(all > code ? all - code : 0, faults * FAULT_US);

	return MAX(us_of(usage->ru_stime) - self.kernel_us, waited);
}

void rewriting_cell(void)
{
	self.began = clock_ns(CLOCK_MONOTONIC);
}

void rewriting_begin(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		return;
	note(&usage);
	self.shared = (uint64_t)usage.ru_maxrss << 10 < LEAST ? 0 : anonymous();
}

struct rewriting rewriting_so_far(void)
{
	struct rewriting found = {0};
	struct rusage usage;
	uint64_t faults, us, shared;

	if (self.shared < LEAST || getrusage(RUSAGE_SELF, &usage) < 0)
		return found;
	faults = (uint64_t)usage.ru_minflt - self.faults;
	us = us_since(&usage, faults);
	note(&usage);
	if (faults * PAGE < MAX(LEAST, self.shared / LEAST_PART))
		return found;
	shared = MIN(still_shared(), self.shared);
	found.bytes = MIN(self.shared - shared, faults * PAGE);
	found.us = us * (found.bytes / PAGE) / faults;
	self.shared = shared;
	if (found.bytes < LEAST)
		found = (struct rewriting){0};
	return found;
}
