/* Finds what a fork cannot copy: other threads, tasks in a foreign event loop, a GPU's context. It is called
 * after every cell, so it must be cheap: a few system calls. */
#include <Python.h>

#include "frozen.h"

#include "base/helpers.h"
#include "channel.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

/* cuDeviceGetCount returns this until somebody initialises CUDA. */
#define CUDA_ERROR_NOT_INITIALIZED 3
/* How long to wait for the end of threads that Python does not know any more. */
#define SETTLE_NS 2000000
#define SETTLE_TRIES 20

/* The ninth field of /proc/PID/stat, after a name that may hold anything. */
#define FLAGS_FORMAT "%*c %*d %*d %*d %*d %*d %u"
#define FLAG_EXITING 0x4u

static bool is_exiting(const char *thread)
{
	char path[64], line[512];
	unsigned flags = 0;
	const char *fields;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", thread);
	file = fopen(path, "re");
	if (!file)
		return true;
	fields = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return fields && sscanf(fields + 1, FLAGS_FORMAT, &flags) == 1 && (flags & FLAG_EXITING);
}

static unsigned threads_living(void)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned n = 0;

	if (!directory)
		return 1;
	while ((entry = readdir(directory)))
		n += entry->d_name[0] != '.' && !is_exiting(entry->d_name);
	closedir(directory);
	return n;
}

/* In a cage without /proc only the threads that Python knows are counted. */
static unsigned threads_of_python(void)
{
	PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
	unsigned n = 0;

	for (; thread; thread = PyThreadState_Next(thread))
		n++;
	return n;
}

/* A thread that Python has joined may still run its last steps, so it is waited for. A thread of a C library does
 * not end, so it is waited for only once. */
static unsigned threads_settled(void)
{
	static unsigned native;
	const struct timespec pause = {.tv_nsec = SETTLE_NS / SETTLE_TRIES};
	unsigned known = threads_of_python(), living = threads_living();

	for (int i = 0; i < SETTLE_TRIES && living > known + native; i++) {
		(void)nanosleep(&pause, NULL);
		living = threads_living();
	}
	native = living > known ? living - known : 0;
	return living;
}

static unsigned thread_count(void)
{
	struct stat status;

	if (stat("/proc/self/task", &status) < 0)
		return threads_of_python();
	/* the entries "." and ".." count as links, too */
	return status.st_nlink > 3 ? threads_settled() : 1;
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
	unsigned threads = thread_count();

	if (threads > 1)
		snprintf(why, sizeof(why),
			 "%u threads besides the main one are running, which a copy would not have", threads - 1);
	else if (tasks > 0)
		snprintf(why, sizeof(why), "%ld asyncio tasks are pending, in a loop that a copy could not have",
			 tasks);
	if (threads > 1 || tasks > 0)
		return why;
	if (cramped)
		return "almost all descriptors are open, and a copy needs some";
	return cuda_in_use() ? "CUDA is initialised, which does not survive a copy" : NULL;
}

uint64_t freeze_memory(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	unsigned long long kilobytes, sum = 0;
	char line[128];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Private_Dirty: %llu kB", &kilobytes) == 1)
			sum += kilobytes;
	fclose(file);
	return sum * 1024;
}
