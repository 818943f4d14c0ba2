/* The pixels of a PNG, which a process of its own decodes: the bytes are a session's, and libpng has had holes.
 * That process can ask the kernel for memory and end, and what it leaves are colours, whoever rules it. */
#pragma once

#include "proto/base.h"

#include "lair.h"

struct pixels {
	uint8_t *rgb; /* three bytes a pixel, rows from above */
	unsigned width, height;
	size_t size; /* of the mapping */
};

/* More are not decoded: 48 MB. */
#define PIXELS_MAX (16U << 20)

/* Whether this was built with libpng. */
bool pixels_can(void);
/* @data is a PNG whose head says @width and @height. Returns 0, -EFBIG, -EBADMSG if it is broken, -ENOTSUP, or
 * another -errno. */
int pixels_read(struct pixels *pixels, struct lair_text data, unsigned width, unsigned height);
/* What that process does first: from then on any other call kills it. Returns whether it is so. */
bool pixels_cage(void);
void pixels_deinit(struct pixels *pixels);
/* Scale it down, so that it is no wider than @width. */
void pixels_fit(struct pixels *pixels, unsigned width);
