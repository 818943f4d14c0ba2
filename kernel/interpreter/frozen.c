/* Finds what a fork cannot copy: threads that do not stand still, tasks in a foreign event loop, a GPU's context.
 * It is called after every cell, so it must be cheap: a few system calls. */
#include <Python.h>

#include "frozen.h"

#include "base/helpers.h"
#include "channel.h"
#include "crowd/crowd.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>

/* cuDeviceGetCount returns this until somebody initialises CUDA. */
#define CUDA_ERROR_NOT_INITIALIZED 3

/* In a cage without /proc only the threads that Python knows are counted. */
static unsigned threads_of_python(void)
{
	PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
	unsigned n = 0;

	for (; thread; thread = PyThreadState_Next(thread))
		n++;
	return n;
}

static const char *threads_unfaithful(void)
{
	static char why[128];
	int others = crowd_size();

	if (others >= 0)
		return others > 0 ? crowd_unfaithful() : NULL;
	others = (int)threads_of_python() - 1;
	if (others <= 0)
		return NULL;
	snprintf(why, sizeof(why),
		 "%d threads besides the main one are running, and without /proc none can be copied", others);
	return why;
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

static long tasks_unforkable(void)
{
	PyObject *count = PyObject_CallNoArgs(helper(HELPER_UNFORKABLE_TASKS));
	long n = count ? PyLong_AsLong(count) : 0;

	Py_XDECREF(count);
	PyErr_Clear();
	return n;
}

const char *freeze_unfaithful(void)
{
	static char why[128];
	bool cramped = exec_channel_cramped();
	long tasks = tasks_unforkable();

	if (tasks > 0) {
		snprintf(why, sizeof(why), "%ld asyncio tasks are pending, in a loop that a copy could not have",
			 tasks);
		return why;
	}
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
