/* Pictures on a terminal that can show them. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <stdio.h>

/* Which way of sending pictures the terminal understands, as far as it is known. */
enum graphics { GRAPHICS_NONE, GRAPHICS_KITTY, GRAPHICS_SIXEL };

/* Whether the terminal is one within another: nothing that the environment says of that is so, and kitty's pictures
 * do not get through. */
bool picture_multiplexed(void);
/* What the environment says. */
enum graphics picture_graphics(void);

/* Whether @data is a PNG of a size that can be shown. With kitty's protocol the terminal decodes it, as it does
 * whatever else it shows; for sixel a process without rights does. */
bool picture_is_png(struct lair_text data);
/* Put @data, of which that is so, into @out as the terminal wants it; on a line of its own, and no wider than the
 * terminal. Returns whether it could; if not, nothing is written. */
bool picture_show(enum graphics graphics, struct lair_text data, FILE *out);
