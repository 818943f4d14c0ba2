/* Headers there and back, and letters over a real socket pair. */
#include "check.h"

#include "proto/link.h"

static void test_headers(void)
{
	const struct link_header header = {.number = 0x0102030405060708, .size = 0, .offset = 9};
	char data[LINK_HEADER + 3] = {0};
	struct link_header got;
	struct bytes frame;

	link_pack(data, &header);
	CHECK(memcmp(data, "\10\7\6\5\4\3\2\1\0\0\0\0\11\0\0\0", LINK_HEADER) == 0);
	memcpy(data + LINK_HEADER, "abc", 3);
	CHECK(link_unpack(&got, &frame, (struct bytes){data, sizeof(data)}));
	CHECK(got.number == header.number && got.offset == 9 && bytes_is(frame, "abc"));
	CHECK(!link_unpack(&got, &frame, (struct bytes){data, LINK_HEADER}));
	CHECK(!link_unpack(&got, &frame, (struct bytes){data, LINK_HEADER - 1}));
	link_pack(data, &(struct link_header){.number = 1, .size = 5});
	CHECK(link_unpack(&got, &frame, (struct bytes){data, LINK_HEADER}));
	CHECK(!link_unpack(&got, &frame, (struct bytes){data, sizeof(data)}));
	link_pack(data, &(struct link_header){.number = 0, .size = 5});
	CHECK(!link_unpack(&got, &frame, (struct bytes){data, LINK_HEADER}));
}

static void test_sending(size_t size)
{
	static char datagram[LINK_HEADER + 200000], buffer[CHANNEL_SIZE_MAX];
	_cleanup_(freep) char *letter = NULL;
	_cleanup_(fd_closep) int ours = -1;
	_cleanup_(fd_closep) int theirs = -1;
	int fds[CHANNEL_FDS_MAX];
	struct link_header header;
	struct bytes data, frame;
	size_t n_fds;

	CHECK(channel_pair(&ours, &theirs) == 0);
	memset(datagram + LINK_HEADER, 'x', size);
	CHECK(link_send(ours, 7, datagram, LINK_HEADER + size, (const int[]){STDIN_FILENO}, 1) == 0);
	CHECK(channel_recv(theirs, buffer, sizeof(buffer), &data, fds, &n_fds) == 0);
	CHECK(link_unpack(&header, &frame, data) && header.number == 7);
	CHECK(n_fds == 1 + (size > LINK_INLINE_MAX));
	if (header.size) {
		CHECK(link_read_letter(&letter, fds[1], &header) == 0);
		frame = (struct bytes){letter, header.size};
	}
	CHECK(bytes_equal(frame, (struct bytes){datagram + LINK_HEADER, size}));
	if (header.size) {
		header.size++;
		free(letter);
		letter = NULL;
		CHECK(link_read_letter(&letter, fds[1], &header) == -EBADMSG);
		CHECK(pwrite(fds[1], "y", 1, 0) < 0 && errno == EPERM);
	}
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
}

int main(void)
{
	test_headers();
	test_sending(1);
	test_sending(LINK_INLINE_MAX);
	test_sending(LINK_INLINE_MAX + 1);
	test_sending(200000);
	return check_report();
}
