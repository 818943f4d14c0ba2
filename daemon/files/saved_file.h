/* A saved state is a file. It begins with a head, then comes a frame with its user, id and names; the bytes of the
 * session begin at the next page. The head has two digests: of all up to that page, which the router checks itself,
 * and of the bytes of the session, which a copier checks. It is written under another name first, and replaces
 * nothing before it is whole and on the disk. Its time of modification is the time when it expires. */
#pragma once

#include "saved.h"

#define SAVED_MAGIC_SIZE 8
#define SAVED_MAGIC "lair\0sv2"
/* What a laird wrote that had no digests: the magic, the length of the frame, and the frame. */
#define SAVED_MAGIC_OLD "lair\0sv1"
#define SAVED_HEAD_OLD_SIZE 12
#define SAVED_FRAME_MAX (16U << 20)
#define SAVED_FOR_EVER_S (100LL * 365 * 24 * 3600)

struct saved_head {
	char magic[SAVED_MAGIC_SIZE];
	uint8_t digest[SHA256_SIZE]; /* of what follows, as far as the bytes of the session */
	uint8_t content[SHA256_SIZE];
	uint32_t size; /* of the frame */
};
_Static_assert(sizeof(struct saved_head) == 76, "a file has no gaps");
#define SAVED_HEAD_CHECKED offsetof(struct saved_head, content)

/* Where the bytes of the session begin, after head and frame of that size. */
static inline uint64_t saved_offset(uint64_t size)
{
	return (size + 4095) / 4096 * 4096;
}
