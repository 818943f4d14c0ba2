/* Headers and letters. The file of a letter is made for it alone and cannot change any more once it is sent. */
#include "proto/link.h"

#include <fcntl.h>
#include <sys/mman.h>

static void put(char *data, uint64_t number, size_t n)
{
	for (size_t i = 0; i < n; i++)
		data[i] = (char)(uint8_t)(number >> (8 * i));
}

static uint64_t get(const char *data, size_t n)
{
	uint64_t number = 0;

	for (size_t i = n; i-- > 0;)
		number = number << 8 | (uint8_t)data[i];
	return number;
}

void link_pack(char data[static LINK_HEADER], const struct link_header *header)
{
	put(data, header->number, 8);
	put(data + 8, header->size, 4);
	put(data + 12, header->offset, 4);
}

bool link_unpack(struct link_header *header, struct bytes *frame, struct bytes data)
{
	if (data.size < LINK_HEADER)
		return false;
	*header = (struct link_header){.number = get(data.data, 8),
				       .size = (uint32_t)get(data.data + 8, 4),
				       .offset = (uint32_t)get(data.data + 12, 4)};
	*frame = (struct bytes){.data = data.data + LINK_HEADER, .size = data.size - LINK_HEADER};
	return header->number > 0 && (header->size == 0) == (frame->size > 0);
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno != EINTR)
			return -errno;
		data += MAX(n, 0);
		size -= (size_t)MAX(n, 0);
	}
	return 0;
}

static int letter_make(int *filep, const char *text, size_t size)
{
	_cleanup_(fd_closep) int file = memfd_create("lair-letter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (file < 0)
		return -errno;
	r = write_all(file, text, size);
	if (!r && fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		r = -errno;
	if (!r)
		*filep = steal_fd(&file);
	return r;
}

int link_send(int fd, uint64_t number, char *datagram, size_t size, const int *fds, size_t n_fds)
{
	struct link_header header = {.number = number};
	struct bytes data = {.data = datagram, .size = size};
	_cleanup_(fd_closep) int letter = -1;
	int all[CHANNEL_FDS_MAX], r;

	if (size > CHANNEL_SIZE_MAX) {
		if (size - LINK_HEADER > UINT32_MAX || n_fds >= CHANNEL_FDS_MAX)
			return -EMSGSIZE;
		header.size = (uint32_t)(size - LINK_HEADER);
		data.size = LINK_HEADER;
	}
	link_pack(datagram, &header);
	if (!header.size)
		return channel_send(fd, data, fds, n_fds);
	for (size_t i = 0; i < n_fds; i++)
		all[i] = fds[i];
	r = letter_make(&letter, datagram + LINK_HEADER, header.size);
	all[n_fds] = letter;
	return r ? r : channel_send(fd, data, all, n_fds + 1);
}

int link_read_letter(char **textp, int file, const struct link_header *header)
{
	_cleanup_(freep) char *text = malloc(header->size);
	size_t have = 0;

	if (!text)
		return -ENOMEM;
	while (have < header->size) {
		ssize_t n = pread(file, text + have, header->size - have, (off_t)(header->offset + have));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		have += (size_t)MAX(n, 0);
	}
	*textp = steal_ptr(&text);
	return 0;
}
