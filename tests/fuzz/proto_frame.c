/* Any bytes through a stream: the reader must never hold more than a frame's maximum and a little. */
#include "proto/frame.h"

#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_reader reader;
	struct bytes frame;
	int fds[2];

	if (size > 65536 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
		return 0;
	if (write(fds[1], data, size) != (ssize_t)size)
		abort();
	frame_reader_init(&reader, 1000);
	while (frame_reader_fill(&reader, fds[0], false) == 0) {
		int r;

		while ((r = frame_reader_next(&reader, &frame)) == 0)
			if (frame.size > 1000)
				abort();
		if (r == FRAME_E_SIZE)
			break;
	}
	frame_reader_deinit(&reader);
	fd_close(fds[0]);
	fd_close(fds[1]);
	return 0;
}
