/* Starts the daemon if none answers, as tmux does: the laird beside the running program, else the one in PATH,
 * in a session of its own. It inherits only our standard error, which goes to a log beside the socket. If
 * several clients do so at once, one daemon survives, by its own lock; the others exit with 3, which counts as
 * success.
 *
 * Until the daemon is ready, a middle process stands between us and it: it makes the daemon a child of init, and
 * still learns how it exited. */
#include "handle.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define LOG_SIZE_MAX (1 << 20)
#define EXIT_ALREADY_RUNNING 3
#define EXIT_CANNOT_EXEC 127
#define READY_FD 3
#define NOBODY "no laird answers on %s"

/* ---- is there a listener? ---- */

static int socket_directory(struct lair *lair, char directory[static PATH_SIZE])
{
	int r = path_directory(directory, lair->socket);

	return r ? lair_fail(lair, r, "%s: %s", lair->shown, strerror(-r)) : 0;
}

/* A socket can be trusted only if nobody but this user and root can put a socket into its directory. */
int socket_trust(struct lair *lair)
{
	char directory[PATH_SIZE];
	struct stat st;
	int r;

	r = socket_directory(lair, directory);
	if (r)
		return r;
	if (stat(directory, &st) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return lair_fail(lair, LAIR_E_NO_DAEMON, NOBODY, lair->shown);
		return lair_fail(lair, LAIR_E_DENIED, "the directory of %s: %s", lair->shown, strerror(errno));
	}
	if ((st.st_uid != geteuid() && st.st_uid != 0 && geteuid() != 0) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return lair_fail(lair, LAIR_E_DENIED,
				 "%s: others may put a socket there; its directory must be owned by you and "
				 "writable by you alone",
				 lair->shown);
	return 0;
}

int socket_probe(struct lair *lair)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_(fd_closep) int fd = -1;
	int r;

	r = socket_trust(lair);
	if (r)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return lair_fail(lair, -errno, "cannot make a socket: %s", strerror(errno));
	memcpy(address.sun_path, lair->socket, strlen(lair->socket) + 1);
	/* If the backlog is full, there is a listener, too. */
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN)
		return 0;
	if (errno == ENOENT || errno == ECONNREFUSED)
		return lair_fail(lair, LAIR_E_NO_DAEMON, NOBODY, lair->shown);
	if (errno == EACCES)
		return lair_fail(lair, LAIR_E_DENIED,
				 "cannot connect to %s: %s; socket_mode and socket_group in [daemon] of its "
				 "sessions.conf decide who may",
				 lair->shown, strerror(errno));
	return lair_fail(lair, -errno, "cannot connect to %s: %s", lair->shown, strerror(errno));
}

/* ---- the child: between fork and exec there are only calls that are safe there ---- */

struct launch {
	char program[PATH_SIZE], config[PATH_SIZE], log_path[PATH_SIZE];
	char *argv[8];
	int log, null;
	off_t log_end; /* here the output of this daemon begins */
	sigset_t no_signals;
};

static void signals_reset(const struct launch *launch)
{
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &launch->no_signals, NULL);
}

static void fds_close_from(unsigned first)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
#endif
	for (long fd = sysconf(_SC_OPEN_MAX) - 1; fd >= (long)first; fd--)
		(void)close((int)fd);
}

/* Each descriptor is moved out of the way first, so that none overwrites another. */
static bool fds_arrange(int log, int null, int ready)
{
	log = fcntl(log, F_DUPFD, READY_FD + 1);
	null = fcntl(null, F_DUPFD, READY_FD + 1);
	ready = fcntl(ready, F_DUPFD, READY_FD + 1);
	if (log < 0 || null < 0 || ready < 0)
		return false;
	if (dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 || dup2(ready, READY_FD) < 0)
		return false;
	fds_close_from(READY_FD + 1);
	return true;
}

static _Noreturn void daemon_exec(const struct launch *launch, int ready)
{
	if (fds_arrange(launch->log, launch->null, ready) && chdir("/") == 0)
		execvp(launch->program, launch->argv);
	_exit(EXIT_CANNOT_EXEC);
}

/* Exits with the daemon's exit status, or with 0 once the daemon is ready. */
static _Noreturn void middle_run(const struct launch *launch)
{
	int ready[2], status = 0;
	ssize_t n;
	pid_t pid;
	char byte;

	signals_reset(launch);
	if (setsid() < 0 || pipe2(ready, O_CLOEXEC) < 0)
		_exit(EXIT_CANNOT_EXEC);
	pid = fork();
	if (pid < 0)
		_exit(EXIT_CANNOT_EXEC);
	if (pid == 0)
		daemon_exec(launch, ready[1]);
	(void)close(ready[1]);
	do
		n = read(ready[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		_exit(0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* ---- our side ---- */

static int log_open(struct launch *launch, struct lair *lair)
{
	char directory[PATH_SIZE];
	struct stat st;
	int r;

	r = socket_directory(lair, directory);
	if (r)
		return r;
	snprintf(launch->log_path, PATH_SIZE, "%.*s/laird.log", SOCKET_PATH_MAX, directory);
	launch->log = open(launch->log_path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (launch->log < 0 || fstat(launch->log, &st) < 0)
		return lair_fail(lair, LAIR_E_START, "cannot open %s: %s", launch->log_path, strerror(errno));
	if (st.st_size > LOG_SIZE_MAX && ftruncate(launch->log, 0) == 0)
		st.st_size = 0;
	launch->log_end = st.st_size;
	return 0;
}

static void launch_deinit(struct launch *launch)
{
	launch->log = fd_close(launch->log);
	launch->null = fd_close(launch->null);
}

static int launch_prepare(struct launch *launch, struct lair *lair)
{
	size_t n = 0;

	if (path_sibling(launch->program, "laird") || access(launch->program, X_OK) < 0)
		strcpy(launch->program, "laird");
	launch->argv[n++] = launch->program;
	launch->argv[n++] = (char *)"--socket";
	launch->argv[n++] = lair->socket;
	if (lair->config) {
		/* laird starts in another directory. */
		if (!realpath(lair->config, launch->config))
			return lair_fail(lair, LAIR_E_START, "laird has no settings: %s: %s", lair->config,
					 strerror(errno));
		launch->argv[n++] = (char *)"--config";
		launch->argv[n++] = launch->config;
	}
	launch->argv[n++] = (char *)"--ready-fd=3";
	sigemptyset(&launch->no_signals);
	launch->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (launch->null < 0)
		return lair_fail(lair, -errno, "/dev/null: %s", strerror(errno));
	return log_open(launch, lair);
}

/* The last lines of its log tell the user the cause. */
static int start_failed(struct lair *lair, const struct launch *launch, int status)
{
	char said[sizeof(lair->error) - 1];
	ssize_t n = pread(launch->log, said, sizeof(said) - 1, launch->log_end);

	while (n > 0 && (said[n - 1] == '\n' || said[n - 1] == '\r'))
		n--;
	if (status == EXIT_CANNOT_EXEC && n <= 0)
		return lair_fail(lair, LAIR_E_START, "cannot run %s; is Lair installed?", launch->program);
	if (n <= 0)
		return lair_fail(lair, LAIR_E_START, "laird ended with status %d; see %s", status,
				 launch->log_path);
	said[n] = '\0';
	return lair_fail(lair, LAIR_E_START, "%s", said);
}

static int middle_wait(struct lair *lair, pid_t pid, int pipe, double start, double timeout, int *statusp)
{
	struct pollfd gone = {.fd = pipe, .events = POLLIN};
	int status, r = poll(&gone, 1, clock_left_ms(start, timeout));

	if (r < 0)
		r = lair_fail(lair, -errno, "interrupted while laird starts");
	else if (r == 0)
		r = lair_fail(lair, -ETIMEDOUT, "laird was not ready within %g seconds", timeout);
	else
		r = 0;
	/* A daemon that is not ready is not wanted. It is in the group that the middle process leads. */
	if (r && kill(-pid, SIGTERM) < 0)
		(void)kill(pid, SIGTERM);
	while (waitpid(pid, &status, 0) < 0) {
		/* Somebody else has reaped the child. So whether a daemon answers must tell how it went. */
		if (errno != EINTR) {
			*statusp = EXIT_ALREADY_RUNNING;
			return r;
		}
	}
	*statusp = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return r;
}

/* Give another daemon a moment to answer. Returns the same as socket_probe. */
static int other_wait(struct lair *lair)
{
	static const struct timespec nap = {.tv_nsec = 5000000};
	int r;

	for (int i = 0; (r = socket_probe(lair)) == LAIR_E_NO_DAEMON && i < 20; i++)
		(void)nanosleep(&nap, NULL);
	return r;
}

/* One attempt. Returns 0 and the daemon's exit status, which is 0 if it is ready; or an error. */
static int launch_run(struct lair *lair, const struct launch *launch, double start, double timeout, int *statusp)
{
	int gone[2], r;
	pid_t pid;

	if (pipe2(gone, O_CLOEXEC) < 0)
		return lair_fail(lair, -errno, "cannot start laird: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		middle_run(launch);
	(void)close(gone[1]);
	r = pid < 0 ? lair_fail(lair, -errno, "cannot start laird: %s", strerror(errno))
		    : middle_wait(lair, pid, gone[0], start, timeout, statusp);
	(void)close(gone[0]);
	return r;
}

static int lock_held(struct lair *lair)
{
	return lair_fail(lair, -ETIMEDOUT, "another laird holds %s.lock but does not answer", lair->shown);
}

int daemon_start(struct lair *lair, double timeout)
{
	_cleanup_(launch_deinit) struct launch launch = {.log = -1, .null = -1};
	double start = clock_seconds();
	int r, status = EXIT_ALREADY_RUNNING;

	r = path_make_socket_dir(lair->socket);
	if (r)
		return lair_fail(lair, r == -EPERM ? LAIR_E_DENIED : LAIR_E_START,
				 "cannot use the directory of %s: %s", lair->shown, strerror(-r));
	r = launch_prepare(&launch, lair);
	if (r)
		return r;
	for (bool held = false; status == EXIT_ALREADY_RUNNING; held = true) {
		r = launch_run(lair, &launch, start, timeout, &status);
		/* The time may be up in the middle of an attempt as well as between two. */
		if (r == -ETIMEDOUT && held)
			return lock_held(lair);
		if (r)
			return r;
		/* Another daemon holds the lock. Soon it will answer, or have ended. */
		if (status == EXIT_ALREADY_RUNNING && (r = other_wait(lair)) != LAIR_E_NO_DAEMON)
			return r;
		if (status == EXIT_ALREADY_RUNNING && clock_left_ms(start, timeout) == 0)
			return lock_held(lair);
	}
	if (status)
		return start_failed(lair, &launch, status);
	lair->started = true;
	return 0;
}
