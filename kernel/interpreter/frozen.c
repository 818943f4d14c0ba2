/* Finds what a fork cannot copy: threads that do not stand still, a GPU's context, what the language names.
 * It is called after every cell, so it must be cheap: a few system calls. */
#include "frozen.h"

#include "channel.h"
#include "language.h"
#include "threads/threads.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* How long to wait for the end of threads that the language does not know any more. */
#define SETTLE_NS 1000000
#define SETTLE_TRIES 20

/* cuDeviceGetCount returns this until somebody initialises CUDA. */
#define CUDA_ERROR_NOT_INITIALIZED 3

/* In a cage without /proc only those can be counted. */
static unsigned threads_known(void)
{
	return language.threads ? language.threads() : 1;
}

/* The last steps of a thread that was joined take a moment. One of a C library does not end, so it is waited
 * for only once. */
static bool others_remain(void)
{
	static const struct timespec pause = {.tv_nsec = SETTLE_NS};
	static bool waited;
	bool alone = threads_alone();

	for (int tries = 0; !alone && !waited && tries < SETTLE_TRIES; tries++) {
		(void)nanosleep(&pause, NULL);
		alone = threads_alone();
	}
	waited = !alone;
	return !alone;
}

static const char *threads_unseen(void)
{
	static char why[128];
	unsigned known = threads_known() - 1;

	if (known == 0 && !others_remain())
		return NULL;
	snprintf(why, sizeof(why), "%s threads are running, and without /proc none can be copied",
		 known ? "other" : "a library's");
	return why;
}

static const char *threads_unfaithful(void)
{
	const char *why;

	if (threads_alone())
		return NULL;
	if (threads_size() < 0)
		return threads_unseen();
	why = threads_why_no_copy();
	return why && threads_known() == 1 && !others_remain() ? NULL : why;
}

/* Where libcuda lies, as of the last time that a library was loaded. */
static struct {
	unsigned long long loads;
	char path[PATH_MAX];
} cuda;

/* Every library in the walk tells how many were loaded. If that number is the old one, the first ends the walk. */
static int look_for_cuda(struct dl_phdr_info *library, size_t size, void *data)
{
	const char *name = strrchr(library->dlpi_name, '/');
	bool *first = data;

	(void)size;
	if (*first && cuda.loads == library->dlpi_adds)
		return 1;
	*first = false;
	cuda.loads = library->dlpi_adds;
	if (name && strncmp(name, "/libcuda.so", strlen("/libcuda.so")) == 0)
		snprintf(cuda.path, sizeof(cuda.path), "%s", library->dlpi_name);
	return 0;
}

static bool cuda_in_use(void)
{
	int (*count)(int *), devices;
	bool first = true;
	void *library;

	dl_iterate_phdr(look_for_cuda, &first);
	if (!cuda.path[0])
		return false;
	library = dlopen(cuda.path, RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return false;
	*(void **)&count = dlsym(library, "cuDeviceGetCount");
	dlclose(library);
	return count && count(&devices) != CUDA_ERROR_NOT_INITIALIZED;
}

const char *why_no_checkpoint(void)
{
	bool cramped = exec_channel_cramped();
	const char *why = language.unfaithful ? language.unfaithful() : NULL;

	if (why)
		return why;
	if (cramped)
		return "almost all descriptors are open, and a copy needs some";
	if (cuda_in_use())
		return "CUDA is initialised, which does not survive a copy";
	return threads_unfaithful();
}

/* A frozen copy may have no memory to allocate. */
uint64_t freeze_memory(void)
{
	static const char field[] = "Private_Dirty:";
	_cleanup_(fd_closep) int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	const char *found;

	text[MAX(size, 0)] = '\0';
	found = strstr(text, field);
	return found ? strtoull(found + strlen(field), NULL, 10) * 1024 : 0;
}
