/* Frames over a real socket pair, and descriptors over another. */
#include "check.h"

#include "proto/channel.h"
#include "proto/frame.h"

#include <fcntl.h>
#include <sys/socket.h>

static void pair_make(int fds[2])
{
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
}

static void test_halves(void)
{
	struct frame_reader reader;
	struct bytes frame;
	int fds[2];

	pair_make(fds);
	frame_reader_init(&reader, 100);
	CHECK(frame_reader_fill(&reader, fds[0], false) == FRAME_E_EMPTY);
	CHECK(write(fds[1], "\3\0", 2) == 2);
	CHECK(frame_reader_fill(&reader, fds[0], false) == 0);
	CHECK(frame_reader_next(&reader, &frame) == FRAME_E_EMPTY);
	CHECK(write(fds[1], "\0\0ab", 4) == 4);
	CHECK(frame_reader_fill(&reader, fds[0], false) == 0);
	CHECK(frame_reader_next(&reader, &frame) == FRAME_E_EMPTY);
	CHECK(write(fds[1], "c\0\0\0\0\1", 6) == 6);
	CHECK(frame_reader_fill(&reader, fds[0], false) == 0);
	CHECK(frame_reader_next(&reader, &frame) == 0 && bytes_is(frame, "abc"));
	CHECK(frame_reader_next(&reader, &frame) == 0 && frame.size == 0);
	CHECK(frame_reader_next(&reader, &frame) == FRAME_E_EMPTY);
	fd_close(fds[1]);
	CHECK(frame_reader_fill(&reader, fds[0], false) == FRAME_E_EOF);
	frame_reader_deinit(&reader);
	fd_close(fds[0]);
}

static void test_too_large(void)
{
	struct frame_reader reader;
	struct bytes frame;
	int fds[2];

	pair_make(fds);
	frame_reader_init(&reader, 100);
	CHECK(write(fds[1], "\145\0\0\0", 4) == 4); /* 101 */
	CHECK(frame_reader_fill(&reader, fds[0], false) == 0);
	CHECK(frame_reader_next(&reader, &frame) == FRAME_E_SIZE);
	CHECK(reader.allocated < 16384);
	frame_reader_deinit(&reader);
	fd_close(fds[0]);
	fd_close(fds[1]);
}

/* Far more than a socket buffer holds, so that both ends have to wait for each other. */
static void test_large(void)
{
	static char sent[3 << 20];
	struct frame_reader reader;
	struct frame_writer writer;
	struct bytes frame;
	int fds[2], r;

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 7);
	pair_make(fds);
	frame_reader_init(&reader, sizeof(sent));
	frame_writer_init(&writer);
	CHECK(frame_writer_put(&writer, (struct bytes){.data = sent, .size = sizeof(sent)}) == 0);
	CHECK(frame_writer_put(&writer, BYTES("next")) == 0);
	CHECK(frame_writer_flush(&writer, fds[1]) == FRAME_E_EMPTY);
	while ((r = frame_reader_next(&reader, &frame)) == FRAME_E_EMPTY) {
		(void)frame_writer_flush(&writer, fds[1]);
		(void)frame_reader_fill(&reader, fds[0], false);
	}
	CHECK(r == 0 && frame.size == sizeof(sent) && !memcmp(frame.data, sent, sizeof(sent)));
	CHECK(frame_writer_flush(&writer, fds[1]) == 0);
	while ((r = frame_reader_next(&reader, &frame)) == FRAME_E_EMPTY)
		(void)frame_reader_fill(&reader, fds[0], false);
	CHECK(r == 0 && bytes_is(frame, "next"));
	fd_close(fds[0]);
	CHECK(frame_writer_put(&writer, BYTES("x")) == 0 && frame_writer_flush(&writer, fds[1]) == FRAME_E_EOF);
	frame_reader_deinit(&reader);
	frame_writer_deinit(&writer);
	fd_close(fds[1]);
}

static void test_channel(void)
{
	int ours, theirs, fds[CHANNEL_FDS_MAX], pipe_fds[2];
	char buffer[64], byte = 0;
	struct bytes data;
	size_t n;

	CHECK(channel_pair(&ours, &theirs) == 0);
	CHECK(channel_recv(ours, buffer, sizeof(buffer), &data, fds, &n) == CHANNEL_E_EMPTY);
	CHECK(pipe(pipe_fds) == 0);
	CHECK(channel_send(theirs, BYTES("take this"), pipe_fds, 2) == 0);
	fd_close(pipe_fds[0]);
	fd_close(pipe_fds[1]);
	CHECK(channel_recv(ours, buffer, sizeof(buffer), &data, fds, &n) == 0);
	CHECK(bytes_is(data, "take this") && n == 2 && fds[2] == -1);
	CHECK(fcntl(fds[0], F_GETFD) == FD_CLOEXEC);
	CHECK(write(fds[1], "!", 1) == 1 && read(fds[0], &byte, 1) == 1 && byte == '!');
	fd_close(fds[0]);
	fd_close(fds[1]);
	CHECK(channel_send(theirs, (struct bytes){.data = buffer, .size = sizeof(buffer)}, NULL, 0) == 0);
	CHECK(channel_recv(ours, buffer, 10, &data, fds, &n) == -EMSGSIZE && n == 0);
	fd_close(theirs);
	CHECK(channel_recv(ours, buffer, sizeof(buffer), &data, fds, &n) == CHANNEL_E_EOF);
	CHECK(channel_send(ours, BYTES("x"), NULL, 0) == CHANNEL_E_EOF);
	fd_close(ours);
}

int main(void)
{
	test_halves();
	test_too_large();
	test_large();
	test_channel();
	return check_report();
}
