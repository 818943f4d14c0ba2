/* Pictures on a terminal that can show them. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <stdio.h>

/* The terminal's protocol for pictures, as far as that is known. */
enum graphics { GRAPHICS_NONE, GRAPHICS_KITTY, GRAPHICS_ITERM };

/* Whether the terminal runs inside another one. Then the environment describes the other one, and pictures do not
 * get through. */
bool picture_multiplexed(void);
/* The protocol according to the environment. */
enum graphics picture_graphics(void);

/* Whether @data is a PNG of a size that can be shown. The terminal decodes it, as everything that it shows. */
bool picture_is_png(struct lair_text data);
/* Put @data, a PNG as above, into @out in the terminal's protocol: on a line of its own, and no wider than the
 * terminal. On failure nothing is written, and the result is false. */
bool picture_show(enum graphics graphics, struct lair_text data, FILE *out);
