/* Making processes. Between fork and exec everything inherited is undone, so a program starts from the same
 * state, no matter who started laird. */
#include "spawn.h"

#include "descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* The first descriptor of what the child is given, and a higher place for it until everything else is in order.
 */
#define FIRST_SLOT 3
#define ABOVE_SLOTS 10

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Ours, before it was raised. */
static struct rlimit descriptors;

void spawn_raise_descriptors(void)
{
	if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0)
		descriptors_limit(true);
}

static int die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	/* It may have died before we asked. */
	return getppid() == parent ? 0 : -ESRCH;
}

/* Ignored signals survive an exec: if a shell runs laird in the background, SIGINT is ignored, and no cell would
 * notice one. */
static int signals_reset(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int signal = 1; signal < NSIG; signal++)
		(void)sigaction(signal, &action, NULL);
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

/* A session must have 1, see kernel/cage/limits.c, so a hard limit of 0 is too low. */
static void cores_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0)
		(void)setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});
}

/* All numbers in [first, last]. Without the system call a directory is read, which needs a free number: there is
 * one, see descriptors_arrange. */
static int close_between(int first, int last)
{
	struct dirent *entry;
	DIR *dir;

	if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
		return 0;
	dir = opendir("/proc/self/fd");
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (fd >= first && fd <= last && fd != dirfd(dir))
			fd_close(fd);
	}
	(void)closedir(dir);
	return 0;
}

/* From FIRST_SLOT on, all between those of @kept. */
static int close_others(const int *kept, size_t n)
{
	int first = FIRST_SLOT, next, r;

	do {
		next = INT_MAX - 1;
		for (size_t i = 0; i < n; i++)
			if (kept[i] >= first)
				next = MIN(next, kept[i]);
		r = close_between(first, next - 1);
		first = next + 1;
	} while (!r && first < INT_MAX);
	return r;
}

/* The descriptors of our parent may fill the table up to the limit. So everything else is closed before a free
 * number is needed. @error comes behind the given ones. Returns its number, or -errno. */
static int descriptors_arrange(const struct spawn_fds *given, int error)
{
	int kept[SPAWN_FDS_MAX + 1], n = (int)given->n, null, r;

	memcpy(kept, given->fds, given->n * sizeof(*kept));
	kept[n] = error;
	fd_close(STDIN_FILENO);
	r = close_others(kept, given->n + 1);
	if (r)
		return r;
	null = open("/dev/null", O_RDONLY);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	for (int i = 0; i <= n; i++) {
		kept[i] = fcntl(kept[i], F_DUPFD, ABOVE_SLOTS);
		if (kept[i] < 0)
			return -errno;
	}
	for (int i = 0; i <= n; i++)
		if (dup3(kept[i], FIRST_SLOT + i, i == n ? O_CLOEXEC : 0) < 0)
			return -errno;
	r = close_between(FIRST_SLOT + n + 1, INT_MAX);
	return r ? r : FIRST_SLOT + n;
}

static void child_run(const char *path, const char *const argv[], const char *const envp[],
		      const struct spawn_fds *given, int error, pid_t parent)
{
	int r = given->stays ? 0 : die_with(parent);

	if (r == 0)
		r = signals_reset();
	if (r == 0)
		r = setsid() < 0 ? -errno : 0;
	cores_limit();
	if (r == 0) {
		r = descriptors_arrange(given, error);
		error = r > 0 ? r : error;
	}
	/* From here on no number above it is needed. */
	if (descriptors.rlim_max > 0)
		(void)setrlimit(RLIMIT_NOFILE, &descriptors);
	if (r > 0) {
		(void)execve(path, (char *const *)argv, (char *const *)envp);
		r = -errno;
	}
	if (write(error, &r, sizeof(r)) < 0)
		_exit(126);
	_exit(127);
}

int spawn_program(pid_t *pidp, const char *path, const char *const argv[], const char *const envp[],
		  const struct spawn_fds *given)
{
	_cleanup_(fd_closep) int reader = -1;
	_cleanup_(fd_closep) int writer = -1;
	pid_t parent = getpid(), pid;
	int pipes[2], failure = 0;
	ssize_t n;

	/* It closes without a byte when the exec succeeds. */
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	reader = pipes[0];
	writer = pipes[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		child_run(path, argv, envp, given, writer, parent);
	fd_closep(&writer);
	do
		n = read(reader, &failure, sizeof(failure));
	while (n < 0 && errno == EINTR);
	/* What failed to start has already exited, and is reaped with the rest. */
	if (n == sizeof(failure))
		return failure;
	*pidp = pid;
	return 0;
}

int spawn_helper(pid_t *pidp, int (*fn)(const char *argument), const char *argument)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(die_with(parent) != 0 || fn(argument) != 0);
	*pidp = pid;
	return 0;
}

int spawn_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}
