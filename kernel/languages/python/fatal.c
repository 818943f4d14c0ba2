/* A crash is told by its signal and the lines that ran. Python's own handler also lists every extension module,
 * which is two kilobytes of names where pandas is loaded. */
#include <Python.h>

#include "fatal.h"

#include <dlfcn.h>
#include <signal.h>

#define STACK_SIZE (64 << 10)

static const struct {
	int number;
	const char *name;
} crashes[] = {
	{SIGSEGV, "Segmentation fault"}, {SIGBUS, "Bus error"}, {SIGFPE, "Floating-point exception"},
	{SIGILL, "Illegal instruction"}, {SIGABRT, "Aborted"},
};

/* Python's, but for its header. It allocates nothing and takes no lock. */
static void (*dump)(int fd, PyThreadState *thread);

static void say(const char *text)
{
	(void)!write(STDERR_FILENO, text, strlen(text)); /* output.c's: what was written before comes before */
}

static void on_crash(int number)
{
	PyThreadState *thread = PyGILState_GetThisThreadState();

	(void)signal(number, SIG_DFL);
	for (size_t i = 0; i < ARRAY_SIZE(crashes); i++) {
		if (crashes[i].number != number)
			continue;
		say("Fatal Python error: ");
		say(crashes[i].name);
		say("\n\n");
	}
	if (thread)
		dump(STDERR_FILENO, thread);
	(void)raise(number);
}

bool fatal_install(void)
{
	static char stack[STACK_SIZE]; /* the usual one may be what has overflowed */
	const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER};

	*(void **)&dump = dlsym(RTLD_DEFAULT, "_Py_DumpTraceback");
	if (!dump || sigaltstack(&other, NULL) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
		(void)sigaction(crashes[i].number, &action, NULL);
	return true;
}
