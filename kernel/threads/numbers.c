/* Functions that name a thread to the kernel by the number that libc remembers. For a thread that has got another
 * one in a copy they would fail, or mean somebody else. This executable takes them over from libc, as output.c does
 * with write(). */
#include "threads.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

#define SIGNAL_OF_CANCEL 32

#define FUNCTIONS(F)                                                                                               \
	F(pthread_kill)                                                                                            \
	F(pthread_cancel)                                                                                          \
	F(pthread_getcpuclockid)                                                                                   \
	F(pthread_setaffinity_np)                                                                                  \
	F(pthread_getaffinity_np)                                                                                  \
	F(pthread_getattr_np)                                                                                      \
	F(pthread_setname_np)                                                                                      \
	F(pthread_getname_np)

#define POINTER_OF(name) __typeof__(&name) name;
#define FIND(name) *(void **)&libc.name = dlsym(RTLD_NEXT, #name);

static struct {
	FUNCTIONS(POINTER_OF)
} libc;

void threads_numbers(void)
{
	FUNCTIONS(FIND)
}

/* Libraries may call a function before threads_learn. */
#define LIBC(name) (libc.name ? (void)0 : threads_numbers(), libc.name)

/* A thread that blocks all signals is not copied: the number would be another one in the middle of a function. */
static uint64_t signals_block(void)
{
	uint64_t all = UINT64_MAX, before = 0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
	return before;
}

static void signals_restore(const uint64_t *before)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof(*before));
}

#define WHOLE _cleanup_(signals_restore) const uint64_t before = signals_block()

static pid_t number_of(pthread_t thread)
{
	int *remembered;

	return threads_number(thread, &remembered);
}

static int send(pid_t number, int signal)
{
	return syscall(SYS_tgkill, getpid(), number, signal) < 0 ? errno : 0;
}

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's are not for us to name
int pthread_kill(pthread_t thread, int signal)
{
	WHOLE;
	pid_t number = number_of(thread);

	return number ? send(number, signal) : LIBC(pthread_kill)(thread, signal);
}

/* libc notes that the thread is to end, and then sends a signal to nobody. */
static int cancel(pthread_t thread)
{
	WHOLE;
	pid_t number = number_of(thread);
	int r = LIBC(pthread_cancel)(thread);

	return number && r == ESRCH ? send(number, SIGNAL_OF_CANCEL) : r;
}

/* A thread that cancels itself may not come back. */
int pthread_cancel(pthread_t thread)
{
	return pthread_equal(thread, pthread_self()) ? LIBC(pthread_cancel)(thread) : cancel(thread);
}

/* As the kernel makes such a number: the thread's, that it is one, and that its time on a processor is meant. */
int pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
	WHOLE;
	pid_t number = number_of(thread);

	if (!number)
		return LIBC(pthread_getcpuclockid)(thread, clock);
	*clock = (clockid_t)(~(unsigned)number << 3 | 6);
	return 0;
}

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
	WHOLE;
	pid_t number = number_of(thread);

	if (!number)
		return LIBC(pthread_setaffinity_np)(thread, size, set);
	return sched_setaffinity(pthread_equal(thread, pthread_self()) ? 0 : number, size, set) < 0 ? errno : 0;
}

int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
	WHOLE;
	pid_t number = number_of(thread);

	if (!number)
		return LIBC(pthread_getaffinity_np)(thread, size, set);
	return sched_getaffinity(pthread_equal(thread, pthread_self()) ? 0 : number, size, set) < 0 ? errno : 0;
}

/* libc asks for the processors of the thread, by the number it remembers: so it is lent the kernel's, one thread at
 * a time. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the builtins write to it */
static int getattr_lending(pthread_t thread, pthread_attr_t *attributes, int *remembered, pid_t number)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	int kept, r;

	pthread_mutex_lock(&one);
	kept = __atomic_exchange_n(remembered, number, __ATOMIC_SEQ_CST);
	r = LIBC(pthread_getattr_np)(thread, attributes);
	__atomic_store_n(remembered, kept, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&one);
	return r;
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
	WHOLE;
	int *remembered;
	pid_t number = threads_number(thread, &remembered);

	return number ? getattr_lending(thread, attributes, remembered, number)
		      : LIBC(pthread_getattr_np)(thread, attributes);
}

static int name_open(pid_t number, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)number);
	return open(path, flags | O_CLOEXEC);
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	WHOLE;
	pid_t number = pthread_equal(thread, pthread_self()) ? 0 : number_of(thread);
	size_t size = strlen(name);
	int fd, r;

	if (!number)
		return LIBC(pthread_setname_np)(thread, name);
	if (size > 15)
		return ERANGE;
	fd = name_open(number, O_WRONLY);
	r = fd < 0 || syscall(SYS_write, fd, name, size) < 0 ? errno : 0;
	fd_close(fd);
	return r;
}

int pthread_getname_np(pthread_t thread, char *name, size_t room)
{
	WHOLE;
	pid_t number = pthread_equal(thread, pthread_self()) ? 0 : number_of(thread);
	ssize_t size;
	int fd, r = 0;

	if (!number)
		return LIBC(pthread_getname_np)(thread, name, room);
	if (room < 16)
		return ERANGE;
	fd = name_open(number, O_RDONLY);
	size = fd < 0 ? -1 : read(fd, name, room - 1);
	if (size > 0)
		name[size - 1] = '\0';
	else
		r = errno;
	fd_close(fd);
	return r;
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
