/* Datagrams with numbers: the channel between the router and a warden or interpreter. Each end numbers what it
 * sends, from 1. A receiver ignores a number that it has received before. So a new router, which cannot know how
 * much the router before it has sent, sends it again.
 *
 * A datagram is a header and a frame. A frame that does not fit is a letter: it lies in a memory file. The
 * router sends the file along. An interpreter may send nothing but bytes, so its letters lie in the file that
 * the router gave it (outbuffer.h). */
#pragma once

#include "proto/channel.h"

#define LINK_HEADER 16
#define LINK_INLINE_MAX (CHANNEL_SIZE_MAX - LINK_HEADER)

/* In front of a frame, each number little-endian. */
struct link_header {
	uint64_t number;
	uint32_t size;	 /* of the letter; 0: the frame follows */
	uint32_t offset; /* of the letter in its file */
};

void link_pack(char data[static LINK_HEADER], const struct link_header *header);
/* Whether @data has a header; @frame is the rest, unless the frame is a letter. */
bool link_unpack(struct link_header *header, struct bytes *frame, struct bytes data);

/* For the router: send @datagram, whose header is filled in here, under @number. A frame that does not fit
 * travels in a file after @fds, which stay the caller's. Returns as channel_send. */
int link_send(int fd, uint64_t number, char *datagram, size_t size, const int *fds, size_t n_fds);

/* Read a letter into @text, the caller's to free. Returns 0, -EBADMSG if the file does not hold it, or -errno. */
int link_read_letter(char **textp, int file, const struct link_header *header);
