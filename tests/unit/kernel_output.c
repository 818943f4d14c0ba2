/* Output without Python: one order for all who write, nothing twice after a fork, nothing lost with the process. */
#include "observe/output.h"

#include "check.h"

#include "proto/outbuffer.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

static int out = -1, err = -1; /* where what is written to 1 and 2 can be read; -1 outside a child */

static void pipe_onto(int *readp, int fd)
{
	int ends[2];

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
	CHECK(dup2(ends[1], fd) == fd);
	fd_close(ends[1]);
	*readp = ends[0];
}

static const char *taken(int fd)
{
	static char buffer[1 << 20];
	ssize_t n = read(fd, buffer, sizeof(buffer) - 1);

	buffer[n > 0 ? n : 0] = '\0';
	return buffer;
}

static bool is(int fd, const char *expected)
{
	const char *got = taken(fd);

	if (strcmp(got, expected) == 0)
		return true;
	fprintf(stderr, "got '%s', expected '%s'\n", got, expected);
	return false;
}

static void put(const char *text)
{
	CHECK(output_put(OUTPUT_OUT, text, strlen(text)) == (ssize_t)strlen(text));
}

static bool order_kept(void)
{
	put("a");
	printf("b%d", 1);
	fputs("c", stdout);
	put("d");
	if (write(STDOUT_FILENO, "e", 1) != 1)
		return false;
	put("f");
	if (writev(STDOUT_FILENO, &(struct iovec){(void *)"g", 1}, 1) != 1)
		return false;
	putchar('h');
	output_end();
	return is(out, "ab1cdefgh");
}

static bool buffered_until_the_end(void)
{
	output_begin(false);
	put("line\n");
	if (!is(out, ""))
		return false;
	output_end();
	return is(out, "line\n");
}

static bool eager_by_lines(void)
{
	output_begin(true);
	put("part");
	if (!is(out, ""))
		return false;
	put(" line\n");
	if (!is(out, "part line\n"))
		return false;
	put("50%\r");
	output_begin(false);
	return is(out, "50%\r");
}

static bool fork_repeats_nothing(void)
{
	pid_t pid;

	put("once ");
	pid = fork();
	if (pid == 0) {
		put("child ");
		output_end();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	put("parent");
	output_end();
	return is(out, "once child parent");
}

static bool descriptors_mended(void)
{
	int file = open("/dev/null", O_WRONLY | O_CLOEXEC);

	put("kept");
	close(STDOUT_FILENO);
	dup2(file, STDERR_FILENO);
	output_put(OUTPUT_ERR, "to the file", 11);
	output_end();
	output_put(OUTPUT_ERR, "err", 3);
	output_end();
	return is(out, "kept") && is(err, "err");
}

static bool waits_where_it_may_not_block(void)
{
	static char much[200000];
	pid_t pid;

	memset(much, 'x', sizeof(much));
	fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
	pid = fork();
	if (pid == 0) {
		for (size_t done = 0; done < sizeof(much);) {
			ssize_t n = output_put(OUTPUT_OUT, much + done, sizeof(much) - done);

			if (n < 0)
				_exit(1);
			done += (size_t)n;
		}
		output_end();
		_exit(0);
	}
	for (size_t got = 0; got < sizeof(much);) {
		struct pollfd readable = {.fd = out, .events = POLLIN};

		if (poll(&readable, 1, 5000) != 1)
			return false;
		got += strlen(taken(out));
	}
	return waitpid(pid, NULL, 0) == pid;
}

static bool descriptor_told(void)
{
	return fileno(stdout) == STDOUT_FILENO && fileno(stderr) == STDERR_FILENO;
}

#define PIPE_SIZE 4096

static volatile sig_atomic_t handled;

static void on_alarm(int number)
{
	ssize_t n;

	(void)number;
	handled = true;
	n = write(STDERR_FILENO, "h", 1);
	(void)n;
}

static void fill(int fd)
{
	static char much[PIPE_SIZE];

	CHECK(fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE) == PIPE_SIZE);
	CHECK(syscall(SYS_write, fd, much, sizeof(much)) == PIPE_SIZE);
}

static void *flush_out(void *unused)
{
	(void)output_flush(OUTPUT_OUT);
	return unused;
}

/* What is in both pipes, once the handler has run. Who waits for itself then does not wait for ever. */
static void *read_both(void *sizes)
{
	size_t *size = sizes;

	while (!handled)
		usleep(1000);
	for (int i = 0; i < 5000 && (size[0] < PIPE_SIZE + 1 || size[1] < PIPE_SIZE + 2); i++) {
		char buffer[PIPE_SIZE];

		for (int k = 0; k < 2; k++) {
			ssize_t n = read(k ? err : out, buffer, sizeof(buffer));

			size[k] += n > 0 ? (size_t)n : 0;
		}
		usleep(1000);
	}
	if (size[1] < PIPE_SIZE + 2)
		_exit(3);
	return NULL;
}

/* A thread holds the lock of stderr, has tried for that of stdout in vain, and waits for a reader. Its handler
 * writes, and must not wait for that thread, which is itself. */
static bool handlers_do_not_wait_for_themselves(void)
{
	const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
	struct sigaction action = {.sa_handler = on_alarm};
	size_t size[2] = {0, 0};
	pthread_t flusher, reader;
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarms, NULL);
	fill(STDOUT_FILENO);
	fill(STDERR_FILENO);
	put("o");
	CHECK(output_put(OUTPUT_ERR, "e", 1) == 1);
	CHECK(pthread_create(&flusher, NULL, flush_out, NULL) == 0);
	while (output_try(OUTPUT_OUT, "", 0))
		usleep(1000);
	CHECK(pthread_create(&reader, NULL, read_both, size) == 0);
	sigaction(SIGALRM, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	while (output_flush(OUTPUT_ERR) == -EINTR)
		;
	pthread_join(flusher, NULL);
	pthread_join(reader, NULL);
	return size[0] == PIPE_SIZE + 1 && size[1] == PIPE_SIZE + 2;
}

static int memory_file(void)
{
	int fd = memfd_create("output", MFD_CLOEXEC);

	CHECK(fd >= 0 && ftruncate(fd, sizeof(struct outbuffers)) == 0);
	return fd;
}

static int forked(bool (*test)(void), int buffers)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		pipe_onto(&out, STDOUT_FILENO);
		pipe_onto(&err, STDERR_FILENO);
		if (output_adopt(buffers, 100) < 0)
			_exit(2);
		_exit(test() ? 0 : 1);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* An interpreter dies with words in its buffer: they are in the memory file. */
static void test_salvage(void)
{
	struct outbuffers found;
	int buffers = memory_file(), from;
	pid_t pid;

	pipe_onto(&from, 50);
	pid = fork();
	if (pid == 0) {
		dup2(50, STDOUT_FILENO);
		if (output_adopt(buffers, 100) == 0)
			put("last words");
		raise(SIGKILL);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(is(from, ""));
	CHECK(pread(buffers, &found, sizeof(found), 0) == sizeof(found));
	CHECK(found.streams[OUTPUT_OUT].start == 0 && found.streams[OUTPUT_OUT].end == strlen("last words"));
	CHECK(!memcmp(found.streams[OUTPUT_OUT].data, "last words", strlen("last words")));
	CHECK(found.streams[OUTPUT_ERR].start == found.streams[OUTPUT_ERR].end);
	fd_close(50);
	fd_close(from);
	fd_close(buffers);
}

static const struct {
	const char *name;
	bool (*run)(void);
} tests[] = {
	{"order_kept", order_kept},
	{"buffered_until_the_end", buffered_until_the_end},
	{"eager_by_lines", eager_by_lines},
	{"fork_repeats_nothing", fork_repeats_nothing},
	{"descriptors_mended", descriptors_mended},
	{"waits_where_it_may_not_block", waits_where_it_may_not_block},
	{"descriptor_told", descriptor_told},
	{"handlers_do_not_wait_for_themselves", handlers_do_not_wait_for_themselves},
};

int main(void)
{
	int buffers = memory_file();

	CHECK(output_install() == 0);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		int status = forked(tests[i].run, buffers);

		if (status != 0)
			fprintf(stderr, "%s: %d\n", tests[i].name, status);
		CHECK(status == 0);
	}
	fd_close(buffers);
	test_salvage();
	return check_report();
}
