/* A child looks at the variables and writes what it has found into a pipe. It runs no code of the session, has none
 * of its threads, and ends with its answer. If it takes too long, as when a thread that it does not have holds a
 * lock, it is killed. This process needs no memory for any of that. */
#include "describe.h"

#include "base/fork.h"
#include "channel.h"
#include "language.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* For one look, and what a piece of its answer may have: a message of this size needs no memory. */
#define PATIENCE_MS 2500
#define PIECE 7000
#define SIZE_MAX_ALL (512U << 10)

/* ---- in the child ---- */

static int frame_of(msgpack_sbuffer *frame)
{
	struct descriptions_record record = {0};
	msgpack_sbuffer packed;

	msgpack_sbuffer_init(&packed);
	if (!language.describe || language.describe(&packed, &record.more) < 0)
		return -1;
	record.variables = wire_bytes(&packed);
	return wire_encode(frame, &descriptions_record_schema, &record);
}

static void look(int fd)
{
	msgpack_sbuffer frame;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	exec_channel_use(-1);
	msgpack_sbuffer_init(&frame);
	if (frame_of(&frame))
		_exit(1);
	for (size_t done = 0; done < frame.size;) {
		long n = syscall(SYS_write, fd, frame.data + done, frame.size - done); /* no effect of a cell */

		if (n <= 0)
			_exit(1);
		done += (size_t)n;
	}
	_exit(0);
}

/* ---- here ---- */

static int tell(uint64_t serial, struct bytes data, bool more, const char *why)
{
	const struct described_message described = {
		.serial = serial, .data = data, .more = more, .why = bytes_of(why)};

	return exec_channel_send(&described_message_schema, &described);
}

/* Fill @piece from @fd. Returns its size, 0 at the end, or -1 if it takes too long. */
static ssize_t piece_read(char *piece, int fd, long long until)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	size_t size = 0;

	while (size < PIECE) {
		long long left = until - (long long)clock_ms();
		ssize_t n;

		if (left <= 0)
			return -1;
		if (poll(&readable, 1, (int)left) <= 0)
			continue;
		n = read(fd, piece + size, PIECE - size);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	return (ssize_t)size;
}

/* @next: the piece that is told when it is known whether more follows. */
static int pass_on(uint64_t serial, int fd, bool *completep)
{
	static char pieces[2][PIECE];
	long long until = (long long)clock_ms() + PATIENCE_MS;
	ssize_t size = piece_read(pieces[0], fd, until), next;
	size_t total = 0;
	int r = 0;

	for (int i = 0; !r && size > 0; i = !i) {
		total += (size_t)size;
		next = size == PIECE ? piece_read(pieces[!i], fd, until) : 0;
		if (next < 0 || total > SIZE_MAX_ALL)
			break;
		r = tell(serial, (struct bytes){pieces[i], (size_t)size}, next > 0, NULL);
		*completep = next == 0;
		size = next;
	}
	return r;
}

static pid_t reap(pid_t pid)
{
	pid_t r;

	(void)kill(pid, SIGKILL);
	do
		r = waitpid(pid, NULL, __WALL);
	while (r < 0 && errno == EINTR);
	return r;
}

static int describe(uint64_t serial)
{
	_cleanup_(fd_closep) int ours = -1, theirs = -1;
	int fds[2], r;
	bool complete = false;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return tell(serial, (struct bytes){0}, false, strerror(errno));
	ours = fds[0];
	theirs = fds[1];
	pid = fork_child();
	if (pid == 0)
		look(theirs);
	if (pid < 0)
		return tell(serial, (struct bytes){0}, false, strerror(-pid));
	fd_closep(&theirs);
	r = pass_on(serial, ours, &complete);
	reap(pid);
	if (!r && !complete)
		r = tell(serial, (struct bytes){0}, false, "nobody could look at them in time");
	return r;
}

int describe_serve(const struct wire_frame *message)
{
	struct describe_message asked;
	int r = exec_channel_decode(&asked, &describe_message_schema, message);

	return r ? r : describe(asked.serial);
}
