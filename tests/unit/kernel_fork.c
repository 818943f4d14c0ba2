/* A sibling: another's child, with a process id that libc knows. */
#include "fork.h"

#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
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
static void make_sibling(int report, int answer)
{
	int pidfd = -1, told[2];
	pid_t pid = fork_sibling(0, &pidfd);

	if (pid == 0)
		sibling(report);
	told[0] = pid;
	told[1] = pidfd < 0 ||
		  ((fcntl(pidfd, F_GETFD) & FD_CLOEXEC) && poll(&(struct pollfd){pidfd, POLLIN, 0}, 1, 5000) == 1);
	if (write(answer, told, sizeof(told)) != sizeof(told))
		_exit(1);
	_exit(0);
}

static void test_sibling(void)
{
	int reports[2] = {-1, -1}, answers[2] = {-1, -1}, told[3] = {0}, answer[2] = {0}, status;
	pid_t pid;

	CHECK(pipe2(reports, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0)
		make_sibling(reports[1], answers[1]);
	CHECK(read(reports[0], told, sizeof(told)) == sizeof(told));
	CHECK(read(answers[0], answer, sizeof(answer)) == sizeof(answer));
	CHECK(told[0] == answer[0]); /* the pid it has is the pid it was said to have */
	CHECK(told[1] == getpid());  /* and this is its parent */
	CHECK(told[2] && answer[1]);
	CHECK(waitpid(answer[0], &status, 0) == answer[0] && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void test_failure(void)
{
	int pidfd = 7;

	CHECK(fork_sibling(CLONE_THREAD, &pidfd) == -EINVAL); /* a thread needs what we do not give it */
	CHECK(pidfd == -1);
}

int main(void)
{
	test_sibling();
	test_failure();
	return check_report();
}
