/* The link, as in proto/link.h: a message that the router repeats after its death is ignored, and a message too
 * large for a datagram is a letter. */
#include "channel.h"

#include "language.h"
#include "observe/output.h"
#include "proto/link.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* If so many descriptors are left, there is room for those that a message brings and for those that are made of
 * it. */
#define ENOUGH 16
/* How long to wait for the router: the first time, and at most. */
#define NAP_NS 20000
#define NAP_MAX_NS 1000000
/* A buffer that is larger is freed. */
#define KEPT_MAX (256 << 10)

static struct {
	int fd;
	int spare;		 /* keeps a number free for a descriptor that a message brings */
	bool cramped;		 /* few other descriptors are left */
	bool alone;		 /* no other thread may run */
	bool with_threads;	 /* there was no room for the last message */
	long nap;		 /* nanoseconds */
	uint64_t sent, received; /* the numbers of the last messages */
	char buffer[CHANNEL_SIZE_MAX];
	char *letter; /* the last one */
	int fds[CHANNEL_FDS_MAX];
	size_t n_fds;
	msgpack_sbuffer frame;
} self = {.fd = -1, .spare = -1};

/* The spare gets a number behind the channel's, out of the way of cells, if one is free. */
static void spare_take(void)
{
	int moved;

	if (self.fd < 0 || self.spare >= 0)
		return;
	self.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	moved = fcntl(self.spare, F_DUPFD_CLOEXEC, self.fd);
	if (moved < 0)
		return;
	fd_close(self.spare);
	self.spare = moved;
}

void exec_channel_use(int fd)
{
	fd_close(self.fd);
	self.spare = fd_close(self.spare);
	self.fd = fd;
	spare_take();
	self.sent = self.received = 0;
}

/* What is sent by one that is alone is short, and needs no more memory than any message gets. */
void exec_channel_alone(bool alone)
{
	static const char room[LINK_HEADER];

	if (alone && !self.frame.alloc)
		(void)msgpack_sbuffer_write(&self.frame, room, sizeof(room));
	self.alone = alone;
}

static void *wait_begin(void)
{
	return self.alone || !language.wait_begin ? NULL : language.wait_begin();
}

static void wait_end(void *state)
{
	if (state)
		language.wait_end(state);
}

bool exec_channel_cramped(void)
{
	struct rlimit limit = {0};
	int lowest = fcntl(self.fd, F_DUPFD_CLOEXEC, 0);

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	self.cramped = lowest < 0 || (rlim_t)lowest + ENOUGH > limit.rlim_cur;
	fd_close(lowest);
	return self.cramped;
}

bool exec_channel_there(void)
{
	return self.fd >= 0;
}

int exec_channel_descriptor(void)
{
	return self.fd;
}

const int *exec_channel_fds(size_t n)
{
	return self.n_fds == n ? self.fds : NULL;
}

void exec_channel_drop_fds(void)
{
	while (self.n_fds > 0)
		fd_close(self.fds[--self.n_fds]);
	spare_take();
}

/* The last descriptor of a letter is its file. */
static int letter_open(const struct link_header *header, struct bytes *frame)
{
	int r = -EBADMSG;

	if (self.n_fds > 0) {
		r = link_read_letter(&self.letter, self.fds[self.n_fds - 1], header);
		fd_close(self.fds[--self.n_fds]);
	}
	*frame = (struct bytes){.data = self.letter, .size = header->size};
	return r;
}

/* Returns as channel_recv. */
static int receive(struct bytes *data)
{
	void *state;
	int r;

	exec_channel_drop_fds();
	free(self.letter);
	self.letter = NULL;
	if (self.cramped)
		self.spare = fd_close(self.spare);
	state = wait_begin();
	r = channel_recv(self.fd, self.buffer, sizeof(self.buffer), data, self.fds, &self.n_fds);
	wait_end(state);
	return r;
}

int exec_channel_receive(struct wire_frame *message)
{
	struct link_header header;
	struct bytes data, frame;
	int r;

	do {
		r = receive(&data);
		if (r)
			return r == CHANNEL_E_EMPTY ? -EAGAIN : r;
		if (!link_unpack(&header, &frame, data))
			return -EBADMSG;
	} while (header.number <= self.received);
	self.received = header.number;
	r = header.size ? letter_open(&header, &frame) : 0;
	if (self.n_fds == 0)
		spare_take();
	if (r || wire_open(message, frame))
		return -EBADMSG;
	return 0;
}

bool exec_channel_waits(void)
{
	struct pollfd readable = {.fd = self.fd, .events = POLLIN};

	return poll(&readable, 1, 0) > 0;
}

/* Signals are blocked from the look for them until ppoll waits, so none is missed: each ends the wait. */
int exec_channel_wait(void)
{
	struct pollfd readable = {.fd = self.fd, .events = POLLIN};
	sigset_t all, before;
	int r, n = 0;

	sigfillset(&all);
	do {
		pthread_sigmask(SIG_SETMASK, &all, &before);
		r = language.interrupted && language.interrupted() ? -EINTR : 0;
		if (!r) {
			void *state = wait_begin();

			n = ppoll(&readable, 1, NULL, &before);
			wait_end(state);
		}
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	} while (!r && n <= 0);
	return r;
}

bool exec_channel_has_unread(void)
{
	struct timespec moment = {.tv_nsec = MAX(self.nap, NAP_NS)};
	void *state;
	int unread = 0;

	self.nap = 0;
	if (ioctl(self.fd, TIOCOUTQ, &unread) < 0 || unread == 0)
		return false;
	/* The longer it waits, the less often it looks: many may wait, and the router needs a processor. */
	self.nap = MIN(2 * moment.tv_nsec, NAP_MAX_NS);
	state = wait_begin();
	nanosleep(&moment, NULL);
	wait_end(state);
	return true;
}

static int encode(const struct wire_schema *schema, const void *message)
{
	static const char room[LINK_HEADER];

	self.frame.size = 0;
	return msgpack_sbuffer_write(&self.frame, room, sizeof(room)) ? -ENOMEM
								      : wire_encode(&self.frame, schema, message);
}

static int send_encoded(void)
{
	struct link_header header = {.number = self.sent + 1};
	struct bytes datagram = wire_bytes(&self.frame);
	int r = 0;

	if (datagram.size > CHANNEL_SIZE_MAX) {
		header.size = (uint32_t)(datagram.size - LINK_HEADER);
		r = output_put_letter(&header.offset, datagram.data + LINK_HEADER, datagram.size - LINK_HEADER);
		datagram.size = LINK_HEADER;
	}
	if (r)
		return r;
	link_pack(self.frame.data, &header);
	self.sent++;
	return channel_send(self.fd, datagram, NULL, 0);
}

/* There is room for two letters. So before one is written, all but the last must have been read. */
int exec_channel_try(const struct wire_schema *schema, const void *message)
{
	int r;

	/* To look takes less time than to encode. */
	if (self.with_threads && exec_channel_has_unread())
		return -EAGAIN;
	r = encode(schema, message);
	self.with_threads = !r && self.frame.size > CHANNEL_SIZE_MAX && exec_channel_has_unread();
	if (self.with_threads)
		return -EAGAIN;
	if (!r)
		r = send_encoded();
	exec_channel_trim(&self.frame);
	return r;
}

int exec_channel_send(const struct wire_schema *schema, const void *message)
{
	int r;

	do
		r = exec_channel_try(schema, message);
	while (r == -EAGAIN);
	return r;
}

int exec_channel_decode(void *out, const struct wire_schema *schema, const struct wire_frame *message)
{
	struct wire_fault fault;

	if (!bytes_is(message->type, schema->type))
		return -EBADMSG;
	return wire_decode(out, schema, message->body, &fault) ? -EBADMSG : 0;
}

void exec_channel_trim(msgpack_sbuffer *buffer)
{
	buffer->size = 0;
	if (buffer->alloc <= KEPT_MAX)
		return;
	msgpack_sbuffer_destroy(buffer);
	msgpack_sbuffer_init(buffer);
}
