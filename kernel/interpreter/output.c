/* One buffer a stream, no matter who writes. sys.stdout appends to it (stream.c). libc's stdout and stderr are
 * unbuffered FILEs whose write function appends to it. This executable's own write() and writev() replace libc's
 * for every library in the process; they flush the buffer before they write to descriptor 1 or 2. So the order
 * of output is the order of the calls, at the price of one memcpy each.
 *
 * The lock is a semaphore, because a signal can interrupt waiting for one; it cannot interrupt waiting for a
 * mutex. Its holder never waits for the GIL, so a thread may hold the GIL while it waits for the lock. A forked
 * child starts with empty private buffers: the parent's were flushed before the fork, and are shared with the
 * router. */
#include <Python.h>

#include "output.h"

#include "effects.h"
#include "proto/outbuffer.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

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

/* Until an interpreter adopts shared buffers, and in the children that a cell forks. */
static struct outbuffers private_buffers, *shared_buffers;

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

static int drain(struct stream *stream)
{
	struct outbuffer *buffer = stream->buffer;

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

static ssize_t put_locked(struct stream *stream, const char *text, size_t size)
{
	if (size <= BUFFER_SIZE - stream->buffer->end) {
		append(stream, text, size);
		/* The text is in the buffer, so it was taken. An error shows when the next text has to go out. */
		if (line_ends(stream, text, size))
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
	bool fits;

	if (line_ends(stream, text, size) || !lock_try(stream))
		return false;
	fits = size <= BUFFER_SIZE - stream->buffer->end;
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

static void fork_child(void)
{
	private_buffers.streams[0].start = private_buffers.streams[0].end = 0;
	private_buffers.streams[1].start = private_buffers.streams[1].end = 0;
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		streams[i].buffer = &private_buffers.streams[i];
		unlock(&streams[i]);
	}
}

/* New programs are also started by vfork, which calls no handlers. But Python announces each of them. */
static int before_program(const char *event, PyObject *args, void *data)
{
	static const char *const events[] = {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec",
					     "os.spawn"};

	(void)args;
	(void)data;
	if (event[0] != 'o' && event[0] != 's')
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (strcmp(event, events[i]) == 0)
			output_flush_all();
	return 0;
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
	return PySys_AddAuditHook(before_program, NULL) < 0 ? -ENOMEM : 0;
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
	shared_buffers = place = memory;
	effects_adopt(&shared_buffers->effects);
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
