/* One buffer a stream, no matter who writes. A language appends to it by output_put. libc's stdout and stderr are
 * unbuffered FILEs whose write function appends to it. This executable's own write() and writev() replace libc's
 * for every library in the process; they flush the buffer before they write to descriptor 1 or 2. So the order
 * of output is the order of the calls, at the price of one memcpy each.
 *
 * The lock is a semaphore, because a signal can interrupt waiting for one; it cannot interrupt waiting for a
 * mutex. Its holder never waits for a lock of the language's, so a thread may hold one while it waits for this. A
 * forked child starts with empty private buffers: the parent's were flushed before the fork, and are shared with
 * the router. */
#include "output.h"

#include "effects.h"
#include "proto/clock.h"
#include "proto/outbuffer.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_SIZE OUTBUFFER_SIZE

struct stream {
	int fd;
	FILE *file;
	struct outbuffer *buffer;
	sem_t lock;
	bool eager;
	int copy; /* of the true descriptor, out of a cell's way */
	dev_t device;
	ino_t inode;
};

static struct stream streams[] = {
	[OUTPUT_OUT] = {.fd = STDOUT_FILENO, .copy = -1},
	[OUTPUT_ERR] = {.fd = STDERR_FILENO, .copy = -1},
};

/* A flood: of lines that are sent at once each costs a system call here, and more in the router. So after FEW_LINES
 * of them within LINGER_NS further ones stay in the buffer until a signal comes, LINGER_NS later at most, or
 * something else sends them. The signal is one that is ignored where nobody wants it: a cell that puts its handlers
 * back, and the programs that it starts, do not die of it. A cell that wants it has it, and its lines are sent at
 * once. */
#define FLOOD_SIGNAL SIGURG
#define FEW_LINES 16
#define LINGER_NS 5000000

static struct {
	uint64_t began; /* when the first of @lines was sent */
	unsigned lines;
	bool made;
	timer_t timer;
	volatile sig_atomic_t armed; /* the signal will come, and stdout's lines wait for it. Under stdout's lock */
} flood;

/* Until an interpreter adopts shared buffers, and in the children that a cell forks. */
static struct outbuffers private_buffers, *shared_buffers;
static char own_set[sizeof(private_buffers.set)];

/* Where the shared buffers lie, in this process and in all its copies: a thread may have the address of one of them
 * while it is copied. */
static void *place;

/* How long a thread may go on to write when it is to stand still. */
#define HOLD_NS 20000000

static struct {
	int file;
	bool second; /* the last letter lies in the second half of the room */
} letters = {.file = -1};

/* How many locks this thread holds or is about to take. If there are any, a signal handler that writes must not
 * wait for a lock. */
static __thread volatile unsigned locking;

static ssize_t write_raw(int fd, const void *data, size_t size)
{
	return syscall(SYS_write, fd, data, size);
}

static bool lock_try(struct stream *stream)
{
	locking++;
	if (sem_trywait(&stream->lock) == 0)
		return true;
	locking--;
	return false;
}

static int lock_wait(struct stream *stream)
{
	int r;

	locking++;
	if (sem_wait(&stream->lock) == 0)
		return 0;
	r = -errno;
	locking--;
	return r;
}

static void lock_wait_long(struct stream *stream)
{
	while (lock_wait(stream) == -EINTR)
		;
}

static void unlock(struct stream *stream)
{
	sem_post(&stream->lock);
	locking--;
}

/* One write. If the cell has made the pipe non-blocking, waits until there is room. Returns what was written, or
 * -errno. */
static ssize_t write_some(int fd, const char *data, size_t size)
{
	for (;;) {
		struct pollfd writable = {.fd = fd, .events = POLLOUT};
		ssize_t n = write_raw(fd, data, size);

		if (n >= 0)
			return n;
		if (errno != EAGAIN)
			return -errno;
		if (poll(&writable, 1, -1) < 0)
			return -errno;
	}
}

static bool flood_set(uint64_t ns)
{
	const struct itimerspec when = {.it_value.tv_nsec = (long)ns};

	return flood.made && timer_settime(flood.timer, 0, &when, NULL) == 0;
}

/* Nothing waits any more. */
static void flood_over(void)
{
	if (!flood.armed)
		return;
	flood.armed = 0;
	(void)flood_set(0);
}

static int drain(struct stream *stream)
{
	struct outbuffer *buffer = stream->buffer;

	if (stream == &streams[OUTPUT_OUT])
		flood_over();
	while (buffer->start < buffer->end) {
		ssize_t n = write_some(stream->fd, buffer->data + buffer->start, buffer->end - buffer->start);

		if (n < 0)
			return (int)n;
		buffer->start += (uint32_t)n;
		if (buffer->start < buffer->end)
			return -EINTR; /* a blocking write stops half-way only for a signal */
	}
	buffer->start = buffer->end = 0;
	return 0;
}

/* If somebody watches both streams, text that was printed before an error message must come before it. */
static int drain_ordered(struct stream *stream)
{
	struct stream *out = &streams[OUTPUT_OUT];

	if (stream != out && lock_try(out)) {
		(void)drain(out);
		unlock(out);
	}
	return drain(stream);
}

static void append(struct stream *stream, const char *text, size_t size)
{
	memcpy(stream->buffer->data + stream->buffer->end, text, size);
	stream->buffer->end += (uint32_t)size;
}

static bool line_ends(const struct stream *stream, const char *text, size_t size)
{
	return stream->eager && (memchr(text, '\n', size) || memchr(text, '\r', size));
}

/* What fits into the pipe now: a signal handler must not wait. */
static void drain_without_waiting(struct stream *stream)
{
	struct outbuffer *buffer = stream->buffer;
	struct pollfd writable = {.fd = stream->fd, .events = POLLOUT};

	while (buffer->start < buffer->end && poll(&writable, 1, 0) == 1 && writable.revents == POLLOUT) {
		ssize_t n = write_raw(stream->fd, buffer->data + buffer->start,
				      MIN(buffer->end - buffer->start, (uint32_t)PIPE_BUF));

		if (n <= 0)
			return;
		buffer->start += (uint32_t)n;
	}
	if (buffer->start == buffer->end)
		buffer->start = buffer->end = flood.armed = 0;
}

static void on_flood(int number)
{
	struct stream *out = &streams[OUTPUT_OUT];
	int kept = errno;

	if (lock_try(out)) {
		drain_without_waiting(out);
		unlock(out);
	}
	if (flood.armed)
		(void)flood_set(LINGER_NS);
	errno = kept;
}

/* Whether the signal is nobody else's. */
static bool flood_signal_take(void)
{
	const struct sigaction ours = {.sa_handler = on_flood, .sa_flags = SA_RESTART};
	struct sigaction now;

	if (sigaction(FLOOD_SIGNAL, NULL, &now) < 0)
		return false;
	if (now.sa_handler == on_flood)
		return true;
	return now.sa_handler == SIG_DFL && sigaction(FLOOD_SIGNAL, &ours, NULL) == 0;
}

static bool flood_arm(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = FLOOD_SIGNAL};

	if (!flood_signal_take())
		return false;
	if (!flood_set(LINGER_NS)) {
		flood.made = timer_create(CLOCK_MONOTONIC, &event, &flood.timer) == 0;
		if (!flood_set(LINGER_NS))
			return false;
	}
	flood.armed = 1;
	return true;
}

static bool held(const struct stream *stream)
{
	return stream == &streams[OUTPUT_OUT] && flood.armed;
}

/* Whether a line that was just put into the buffer may wait there: it is not lost if this process ends. What stderr
 * gets is sent at once, after what stdout got before it. */
static bool line_waits(const struct stream *stream)
{
	uint64_t now;

	if (stream != &streams[OUTPUT_OUT] || stream->buffer == &private_buffers.streams[OUTPUT_OUT])
		return false;
	if (held(stream))
		return true;
	now = clock_ns(CLOCK_MONOTONIC);
	if (now - flood.began > LINGER_NS) {
		flood.began = now;
		flood.lines = 0;
	}
	return ++flood.lines > FEW_LINES && flood_arm();
}

static ssize_t put_locked(struct stream *stream, const char *text, size_t size)
{
	if (size <= BUFFER_SIZE - stream->buffer->end) {
		append(stream, text, size);
		/* The text is in the buffer, so it was taken. An error shows when the next text has to go out. */
		if (line_ends(stream, text, size) && !line_waits(stream))
			(void)drain_ordered(stream);
		return (ssize_t)size;
	} else {
		int r = drain_ordered(stream);

		if (r)
			return r;
	}
	if (size >= BUFFER_SIZE)
		return write_some(stream->fd, text, size);
	append(stream, text, size);
	return (ssize_t)size;
}

ssize_t output_put(enum output_stream which, const char *text, size_t size)
{
	struct stream *stream = &streams[which];
	ssize_t n;
	int r;

	r = lock_wait(stream);
	if (r)
		return r;
	n = put_locked(stream, text, size);
	unlock(stream);
	return n;
}

bool output_try(enum output_stream which, const char *text, size_t size)
{
	struct stream *stream = &streams[which];
	bool ends = line_ends(stream, text, size), fits;

	if ((ends && !held(stream)) || !lock_try(stream))
		return false;
	fits = size <= BUFFER_SIZE - stream->buffer->end && (!ends || held(stream));
	if (fits)
		append(stream, text, size);
	unlock(stream);
	return fits;
}

int output_flush(enum output_stream which)
{
	struct stream *stream = &streams[which];
	int r;

	r = lock_wait(stream);
	if (r)
		return r;
	r = drain_ordered(stream);
	unlock(stream);
	return r;
}

void output_flush_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++)
		while (output_flush((enum output_stream)i) == -EINTR)
			;
}

bool output_hold(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += HOLD_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		locking++;
		while (sem_timedwait(&streams[i].lock, &until) < 0) {
			if (errno == EINTR)
				continue;
			locking--;
			while (i-- > 0)
				unlock(&streams[i]);
			return false;
		}
	}
	return true;
}

void output_let_go(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++)
		unlock(&streams[i]);
}

/* ---- libc's stdout and stderr ---- */

static ssize_t cookie_write(void *cookie, const char *text, size_t size)
{
	struct stream *stream = cookie;
	size_t done = 0;

	while (done < size) {
		ssize_t n = output_put((enum output_stream)(stream - streams), text + done, size - done);

		if (n == -EINTR)
			continue;
		if (n < 0) {
			errno = (int)-n;
			break;
		}
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static FILE *cookie_open(struct stream *stream)
{
	FILE *file = fopencookie(stream, "w", (cookie_io_functions_t){.write = cookie_write});

	if (file)
		setvbuf(file, NULL, _IONBF, 0);
	return file;
}

/* ---- functions that replace libc's for every library in the process ---- */

static void flush_before(int fd)
{
	struct stream *stream;

	if ((fd != STDOUT_FILENO && fd != STDERR_FILENO) || locking)
		return;
	stream = &streams[fd == STDERR_FILENO];
	if (!stream->buffer || stream->buffer->start == stream->buffer->end)
		return;
	lock_wait_long(stream);
	while (drain_ordered(stream) == -EINTR)
		;
	unlock(stream);
}

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's are not for us to name
ssize_t write(int fd, const void *data, size_t size)
{
	flush_before(fd);
	effects_writing(fd);
	return write_raw(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int n)
{
	flush_before(fd);
	effects_writing(fd);
	return syscall(SYS_writev, fd, parts, n);
}

/* A FILE of fopencookie has no descriptor, but programs ask for that of stdout. */
int fileno(FILE *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++)
		if (file == streams[i].file)
			return streams[i].fd;
	return fileno_unlocked(file);
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

/* ---- forks and new programs ---- */

static void fork_prepare(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		lock_wait_long(&streams[i]);
		while (drain(&streams[i]) == -EINTR)
			;
	}
}

static void fork_parent(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++)
		unlock(&streams[i]);
}

/* A copy of a process has no timers. */
static void flood_forget(void)
{
	flood.armed = 0;
	flood.made = false;
}

static void fork_child(void)
{
	private_buffers.streams[0].start = private_buffers.streams[0].end = 0;
	private_buffers.streams[1].start = private_buffers.streams[1].end = 0;
	flood_forget();
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		streams[i].buffer = &private_buffers.streams[i];
		unlock(&streams[i]);
	}
}

int output_install(void)
{
	effects_install();
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		sem_init(&streams[i].lock, 0, 1);
		streams[i].buffer = &private_buffers.streams[i];
		streams[i].file = cookie_open(&streams[i]);
		if (!streams[i].file)
			return -ENOMEM;
	}
	stdout = streams[OUTPUT_OUT].file;
	stderr = streams[OUTPUT_ERR].file;
	if (pthread_atfork(fork_prepare, fork_parent, fork_child) != 0 || atexit(output_flush_all) != 0)
		return -ENOMEM;
	return 0;
}

/* ---- the interpreter's buffers ---- */

void output_release(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		streams[i].buffer = &private_buffers.streams[i];
		streams[i].copy = fd_close(streams[i].copy);
	}
	effects_adopt(NULL);
	if (shared_buffers)
		(void)mmap(place, sizeof(*shared_buffers), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	shared_buffers = NULL;
	letters.file = fd_close(letters.file);
}

/* Letters take turns in both halves: while one is written, the other may not have been read yet. They are written
 * through a mapping, because writes are subject to the limit on the size of files. */
int output_put_letter(uint32_t *offset, const char *text, size_t size)
{
	void *memory;

	if (size > LETTER_MAX)
		return -EMSGSIZE;
	letters.second = !letters.second;
	*offset = letters.second ? LETTER_MAX : 0;
	memory = mmap(NULL, size, PROT_WRITE, MAP_SHARED, letters.file, (off_t)(LETTERS_OFFSET + *offset));
	if (memory == MAP_FAILED)
		return -errno;
	memcpy(memory, text, size);
	munmap(memory, size);
	return 0;
}

int output_adopt(int buffers, int floor)
{
	int flags = place ? MAP_SHARED | MAP_FIXED : MAP_SHARED;
	void *memory = mmap(place, sizeof(*shared_buffers), PROT_READ | PROT_WRITE, flags, buffers, 0);

	if (memory == MAP_FAILED)
		return -errno;
	flood_forget();
	shared_buffers = place = memory;
	effects_adopt(&shared_buffers->effects);
	if (own_set[0])
		output_tell_set(own_set);
	letters.second = false;
	letters.file = fcntl(buffers, F_DUPFD_CLOEXEC, floor);
	if (letters.file < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		struct stream *stream = &streams[i];
		struct stat status;

		stream->copy = fcntl(stream->fd, F_DUPFD_CLOEXEC, floor);
		if (stream->copy < 0 || fstat(stream->fd, &status) < 0)
			return -errno;
		stream->device = status.st_dev;
		stream->inode = status.st_ino;
		stream->buffer = &shared_buffers->streams[i];
	}
	return 0;
}

void output_tell_set(const char *set)
{
	if (set != own_set)
		(void)snprintf(own_set, sizeof(own_set), "%s", set);
	if (shared_buffers)
		memcpy(shared_buffers->set, own_set, sizeof(own_set));
}

void output_prepared(void)
{
	if (shared_buffers)
		__atomic_store_n(&shared_buffers->prepared, 1, __ATOMIC_RELEASE);
}

uint64_t output_interrupted(void)
{
	return shared_buffers ? __atomic_load_n(&shared_buffers->interrupted, __ATOMIC_ACQUIRE) : 0;
}

void output_begin(bool eager)
{
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++)
		streams[i].eager = eager;
}

static bool true_descriptor(const struct stream *stream)
{
	struct stat status;

	return fstat(stream->fd, &status) == 0 && status.st_dev == stream->device && status.st_ino == stream->inode;
}

void output_end(void)
{
	bool mended = false;

	fflush(stdout);
	output_flush_all();
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		if (true_descriptor(&streams[i]))
			continue;
		mended |= dup2(streams[i].copy, streams[i].fd) >= 0;
	}
	if (mended)
		output_flush_all(); /* text that a closed descriptor did not take */
}
