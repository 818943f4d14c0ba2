/* A sibling: another's child, with a process id that libc knows. */
#include "base/fork.h"

#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* raise() and the locks of threads go by the thread id that libc remembers. */
static void sibling(int report)
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t mutex;
	int told[3] = {getpid(), getppid(), 0};

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&mutex, &attributes);
	told[2] = pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0 &&
		  syscall(SYS_gettid) == getpid();
	if (write(report, told, sizeof(told)) != sizeof(told))
		_exit(1);
	raise(SIGTERM);
	_exit(1);
}

/* In a child of the test, whose sibling must then be the test's child. */
static void make_sibling(int group, int report, int answer)
{
	int pidfd = -1, told[2];
	pid_t pid = group < 0 ? fork_sibling(0, &pidfd) : fork_sibling_into(group, 0, &pidfd);

	if (pid == 0)
		sibling(report);
	told[0] = pid;
	told[1] = pidfd < 0 ||
		  ((fcntl(pidfd, F_GETFD) & FD_CLOEXEC) && poll(&(struct pollfd){pidfd, POLLIN, 0}, 1, 5000) == 1);
	if (write(answer, told, sizeof(told)) != sizeof(told))
		_exit(1);
	_exit(0);
}

static void test_sibling(int group)
{
	int reports[2] = {-1, -1}, answers[2] = {-1, -1}, told[3] = {0}, answer[2] = {0}, status;
	pid_t pid;

	CHECK(pipe2(reports, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0)
		make_sibling(group, reports[1], answers[1]);
	CHECK(read(reports[0], told, sizeof(told)) == sizeof(told));
	CHECK(read(answers[0], answer, sizeof(answer)) == sizeof(answer));
	CHECK(told[0] == answer[0]); /* the pid it has is the pid it was said to have */
	CHECK(told[1] == getpid());  /* and this is its parent */
	CHECK(told[2] && answer[1]);
	CHECK(waitpid(answer[0], &status, 0) == answer[0] && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* A group of version 2 takes no controller to be born in. */
static int group_make(char path[static 128])
{
	static const char *const mounts[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};

	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		snprintf(path, 128, "%s/cgroup.procs", mounts[i]);
		if (access(path, F_OK) < 0)
			continue;
		snprintf(path, 128, "%s/lair-unit-%d", mounts[i], (int)getpid());
		if (mkdir(path, 0755) == 0)
			return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return -1;
}

static unsigned processes_in(int group)
{
	int fd = openat(group, "cgroup.procs", O_RDONLY), pid;
	FILE *file = fdopen(fd, "r");
	unsigned n = 0;

	while (file && fscanf(file, "%d", &pid) == 1)
		n++;
	if (file)
		fclose(file);
	return n;
}

static void test_sibling_in_group(void)
{
	char path[128];
	int group = group_make(path), pidfd, report[2];
	pid_t pid;

	if (group < 0) {
		printf("no control group of version 2 can be made here: what is born in one is not tested\n");
		return;
	}
	test_sibling(group);
	CHECK(pipe2(report, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0 && fork_sibling_into(group, 0, &pidfd) == 0) {
		fd_close(report[1]);
		(void)!read(report[0], path, 1); /* until the test has looked */
	}
	if (pid == 0)
		_exit(0);
	CHECK(waitpid(pid, NULL, 0) == pid && processes_in(group) == 1);
	fd_close(report[1]);
	CHECK(waitpid(-1, NULL, 0) > 0 && processes_in(group) == 0);
	CHECK(rmdir(path) == 0);
	fd_close(report[0]);
	CHECK(fork_sibling_into(report[0], 0, &pidfd) == -EBADF && pidfd == -1);
	fd_close(group);
}

static void test_failure(void)
{
	int pidfd = 7;

	CHECK(fork_sibling(CLONE_THREAD, &pidfd) == -EINVAL); /* a thread needs what we do not give it */
	CHECK(pidfd == -1);
}

int main(void)
{
	test_sibling(-1);
	test_sibling_in_group();
	test_failure();
	return check_report();
}
