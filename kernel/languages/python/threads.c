/* A library reads its variable when it is loaded, in the template or by a session. One that was loaded in the
 * template is told the number by its own function; the names are those of its common builds.
 *
 * OpenBLAS then starts its threads at once. But it ends them before a fork, and starts them again when they are
 * needed. So one fork, whose child ends at once, leaves a template with one thread, and sessions that pay for
 * threads when they first compute with them. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "threads.h"

#include "helpers.h"
#include "owned.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#define NAMES_MAX 8
#define LIBRARIES_MAX 32
#define PAUSE_NS 1000000
#define PAUSES 1000

static struct pool {
	const char *variable;
	const char *libraries[NAMES_MAX]; /* what the names of their files begin with */
	const char *setters[NAMES_MAX];
	bool given; /* by the profile */
} pools[] = {
	{.variable = "OPENBLAS_NUM_THREADS",
	 .libraries = {"libopenblas", "libscipy_openblas", "libblas"},
	 .setters = {"openblas_set_num_threads", "openblas_set_num_threads64_", "openblas_set_num_threads_64",
		     "scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_",
		     "scipy_openblas_set_num_threads_64"}},
	{.variable = "MKL_NUM_THREADS", .libraries = {"libmkl_rt", "libblas"}, .setters = {"MKL_Set_Num_Threads"}},
	{.variable = "OMP_NUM_THREADS",
	 .libraries = {"libgomp", "libomp", "libiomp"},
	 .setters = {"omp_set_num_threads"}},
	/* numexpr would start its threads at once, and not again after a fork */
	{.variable = "NUMEXPR_NUM_THREADS"},
};

void threads_begin(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
		pools[i].given = getenv(pools[i].variable);
		setenv(pools[i].variable, "1", 0);
	}
}

struct libraries {
	const char *paths[LIBRARIES_MAX]; /* the linker's; they stay loaded */
	size_t n;
};

static int library_note(struct dl_phdr_info *library, size_t size, void *data)
{
	struct libraries *libraries = data;
	const char *name = strrchr(library->dlpi_name, '/');

	if (!name || libraries->n == LIBRARIES_MAX)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
		for (const char *const *begin = pools[i].libraries; *begin; begin++) {
			if (strncmp(name + 1, *begin, strlen(*begin)) == 0) {
				libraries->paths[libraries->n++] = library->dlpi_name;
				return 0;
			}
		}
	}
	return 0;
}

static void tell(void *library, const struct pool *pool, int n)
{
	void (*set)(int);

	for (const char *const *name = pool->setters; *name; name++) {
		*(void **)&set = dlsym(library, *name);
		if (set)
			set(n);
	}
}

/* A library's function may be found by way of another that needs it. It is then told the same number again. */
static void tell_loaded(int n)
{
	struct libraries libraries = {.n = 0};

	dl_iterate_phdr(library_note, &libraries);
	for (size_t i = 0; i < libraries.n; i++) {
		void *library = dlopen(libraries.paths[i], RTLD_LAZY | RTLD_NOLOAD);

		for (size_t j = 0; library && j < ARRAY_SIZE(pools); j++)
			if (!pools[j].given)
				tell(library, &pools[j], n);
		if (library)
			dlclose(library);
	}
}

/* Python has read the environment when it began, and has its own. */
static int environment_tell(unsigned n)
{
	for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
		PyObject *done = pools[i].given ? Py_NewRef(Py_None)
						: PyObject_CallFunction(helper(HELPER_ALLOW_THREADS), "sI",
									pools[i].variable, n);

		if (!done)
			return -1;
		Py_DECREF(done);
	}
	return 0;
}

static int threads_end(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

static long threads_count(void)
{
	OWNED *count = PyObject_CallNoArgs(helper(HELPER_THREADS));
	long n = count ? PyLong_AsLong(count) : -1;

	PyErr_Clear();
	return n;
}

/* One that ends may still be counted for a moment. */
static bool threads_one(void)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_NS};

	for (int i = 0; i < PAUSES && threads_count() != 1; i++)
		(void)nanosleep(&pause, NULL);
	return threads_count() == 1;
}

int threads_allow(unsigned n, char *reason, size_t size)
{
	int r;

	if (environment_tell(n) < 0) {
		helper_error(reason, size);
		return -1;
	}
	tell_loaded((int)n);
	r = threads_end();
	if (!r && threads_one())
		return 0;
	snprintf(reason, size, "threads = %u: %s", n,
		 r ? strerror(-r) : "a preloaded library keeps its threads, which no session would have");
	return -1;
}
