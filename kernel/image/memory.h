/* The mappings of this process, as the kernel lists them. */
#pragma once

#include "format.h"

#define MEMORY_PATH_MAX 512

struct memory_area {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	uint8_t protection, flags; /* IMAGE_HUGE, IMAGE_WIPE */
	bool shared, droppable;
	char path[MEMORY_PATH_MAX]; /* or "[stack]", or empty */
};

/* Call @each for all mappings but the zone, in order, while it returns NULL. No memory is allocated. @advised: find
 * out the flags and what is droppable, too, which takes longer. Returns NULL or what is wrong, static. */
const char *memory_walk(bool advised, const char *(*each)(const struct memory_area *area, void *data), void *data);

/* What the kernel lends. The rest of @specials is zero. Returns NULL or what is wrong. */
const char *memory_specials(struct image_special specials[static IMAGE_SPECIALS]);
/* Of the kernel and of its code, the last special. */
void memory_kernel(uint8_t out[static SHA256_SIZE], const struct image_special specials[static IMAGE_SPECIALS]);
