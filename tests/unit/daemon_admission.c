/* The accept4() that libzmq gets: whom it lets in, and what it does without descriptors. This process is the
 * client, the one that accepts and, where that is asked for, the keeper. */
#include "check.h"

#include "admission.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

static struct sockaddr_un address = {.sun_family = AF_UNIX};

static int listen_there(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	CHECK(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 64) == 0);
	return fd;
}

static int connect_there(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

/* libzmq ends the process for any other error. */
static bool refused(int listener)
{
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0 && errno == ECONNABORTED;
}

static void check_nobody(int listener)
{
	CHECK(accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0 && errno == EAGAIN);
}

static void check_limit(int listener)
{
	const struct timespec pause = {.tv_nsec = 150000000};
	int near[4], far[4];
	const char *why;

	admission_limit(3);
	for (int i = 0; i < 3; i++) {
		far[i] = connect_there();
		near[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		CHECK(near[i] >= 0 && (fcntl(near[i], F_GETFD) & FD_CLOEXEC));
	}
	far[3] = connect_there();
	CHECK(refused(listener));
	CHECK(admission_refused(&why) == 1 && strstr(why, "connections_per_uid"));
	close(far[3]);
	/* One that libzmq has closed makes room, though its number is another file's by then. */
	close(near[1]);
	near[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	nanosleep(&pause, NULL);
	far[3] = connect_there();
	near[3] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(near[3] >= 0);
	for (int i = 0; i < 4; i++) {
		close(near[i]);
		close(far[i]);
	}
	nanosleep(&pause, NULL);
	admission_limit(1000);
}

static void check_no_descriptors(int listener)
{
	struct rlimit before, none;
	int far = connect_there(), next = fcntl(far, F_DUPFD_CLOEXEC, 0);
	const char *why;

	close(next);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	CHECK(refused(listener));
	CHECK(strstr((admission_refused(&why), why), "no descriptors"));
	/* It is not left waiting, or it would be ready for ever. */
	check_nobody(listener);
	setrlimit(RLIMIT_NOFILE, &before);
	close(far);
	far = connect_there();
	next = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(next >= 0);
	close(next);
	close(far);
}

/* What descends from the keeper is a session's. */
static void check_caged(int listener)
{
	const char *why;
	pid_t child;

	admission_begin(getpid());
	child = fork();
	if (child == 0) {
		(void)connect_there();
		pause();
	}
	while (accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0 && errno == EAGAIN)
		usleep(1000);
	CHECK(errno == ECONNABORTED && strstr((admission_refused(&why), why), "cage"));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	int listener;

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/lair-unit-admission-%d", getpid());
	listener = listen_there();
	admission_begin(1);
	check_nobody(listener);
	check_limit(listener);
	check_no_descriptors(listener);
	check_caged(listener);
	close(listener);
	unlink(address.sun_path);
	return check_report();
}
