/* Length-prefixed frames. The reader keeps one buffer that holds at most one partial frame beyond what has been
 * consumed; it grows to what a declared length needs, never past the maximum. */
#include "proto/frame.h"

#include "proto/channel.h"

#include <sys/socket.h>

#define PREFIX 4
#define READ_SIZE 65536

void frame_reader_init(struct frame_reader *reader, size_t max)
{
	*reader = (struct frame_reader){.max = max};
}

void frame_reader_deinit(struct frame_reader *reader)
{
	free(reader->data);
	frame_reader_init(reader, reader->max);
}

static size_t prefix_get(const char *data)
{
	const uint8_t *p = (const uint8_t *)data;

	return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

static int buffer_grow(char **datap, size_t *allocatedp, size_t wanted)
{
	size_t allocated = MAX(*allocatedp, (size_t)4096);
	char *grown;

	if (wanted <= *allocatedp)
		return 0;
	while (allocated < wanted)
		allocated *= 2;
	grown = realloc(*datap, allocated);
	if (!grown)
		return -ENOMEM;
	*datap = grown;
	*allocatedp = allocated;
	return 0;
}

/* Space for the next read: the rest of a frame whose length is known, else a little. */
static int reader_make_room(struct frame_reader *reader)
{
	size_t held = reader->end - reader->start, wanted = held + 4096;

	if (held == 0) {
		reader->start = reader->end = 0;
		/* One huge frame must not be paid for during the rest of a session's life. */
		if (reader->allocated > 4 * READ_SIZE) {
			free(reader->data);
			reader->data = NULL;
			reader->allocated = 0;
		}
	} else if (reader->start > 0) {
		memmove(reader->data, reader->data + reader->start, held);
		reader->start = 0;
		reader->end = held;
	}
	if (held >= PREFIX)
		wanted = MAX(wanted, PREFIX + MIN(prefix_get(reader->data), MIN(reader->max, held + READ_SIZE)));
	return buffer_grow(&reader->data, &reader->allocated, wanted);
}

static int filled(struct frame_reader *reader, ssize_t n)
{
	if (n > 0) {
		reader->end += (size_t)n;
		return 0;
	}
	if (n == 0 || errno == ECONNRESET)
		return FRAME_E_EOF;
	return errno == EAGAIN ? FRAME_E_EMPTY : -errno;
}

int frame_reader_fill(struct frame_reader *reader, int fd, bool interruptible)
{
	ssize_t n;
	int r;

	r = reader_make_room(reader);
	if (r)
		return r;
	do
		n = read(fd, reader->data + reader->end, reader->allocated - reader->end);
	while (n < 0 && errno == EINTR && !interruptible);
	return filled(reader, n);
}

int frame_reader_fill_fds(struct frame_reader *reader, int fd, bool interruptible, int *fds, size_t *n_fds,
			  size_t max)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec part;
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;
	int r;

	r = reader_make_room(reader);
	if (r)
		return r;
	part = (struct iovec){.iov_base = reader->data + reader->end, .iov_len = reader->allocated - reader->end};
	do {
		message.msg_control = control.space;
		message.msg_controllen = sizeof(control.space);
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR && !interruptible);
	if (n > 0)
		channel_take_fds(&message, fds, n_fds, max);
	return filled(reader, n);
}

int frame_reader_next(struct frame_reader *reader, struct bytes *frame)
{
	size_t held = reader->end - reader->start, size;

	if (held < PREFIX)
		return FRAME_E_EMPTY;
	size = prefix_get(reader->data + reader->start);
	if (size > reader->max)
		return FRAME_E_SIZE;
	if (held - PREFIX < size)
		return FRAME_E_EMPTY;
	*frame = (struct bytes){.data = reader->data + reader->start + PREFIX, .size = size};
	reader->start += PREFIX + size;
	return 0;
}

void frame_writer_init(struct frame_writer *writer)
{
	*writer = (struct frame_writer){0};
}

void frame_writer_deinit(struct frame_writer *writer)
{
	free(writer->data);
	frame_writer_init(writer);
}

int frame_writer_put(struct frame_writer *writer, struct bytes frame)
{
	uint32_t size = (uint32_t)frame.size;
	const char prefix[PREFIX] = {(char)size, (char)(size >> 8), (char)(size >> 16), (char)(size >> 24)};
	int r;

	if (frame.size > UINT32_MAX)
		return -EMSGSIZE;
	if (writer->start == writer->end)
		writer->start = writer->end = 0;
	r = buffer_grow(&writer->data, &writer->allocated, writer->end + PREFIX + frame.size);
	if (r)
		return r;
	memcpy(writer->data + writer->end, prefix, PREFIX);
	memcpy(writer->data + writer->end + PREFIX, frame.data, frame.size);
	writer->end += PREFIX + frame.size;
	return 0;
}

int frame_writer_flush(struct frame_writer *writer, int fd)
{
	while (writer->start < writer->end) {
		ssize_t n = send(fd, writer->data + writer->start, writer->end - writer->start, MSG_NOSIGNAL);

		if (n >= 0) {
			writer->start += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN)
			return FRAME_E_EMPTY;
		return errno == EPIPE || errno == ECONNRESET ? FRAME_E_EOF : -errno;
	}
	return 0;
}
