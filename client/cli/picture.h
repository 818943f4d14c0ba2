/* Pictures on a terminal that can show them. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <stdio.h>

/* Which way of sending pictures the terminal understands, as far as that is known. */
enum graphics { GRAPHICS_NONE, GRAPHICS_KITTY, GRAPHICS_SIXEL };

/* Whether the terminal runs inside another one. Then nothing that the environment says of the other holds, and
 * kitty's pictures do not get through. */
bool picture_multiplexed(void);
/* What the environment says of the terminal. */
enum graphics picture_graphics(void);

/* Whether @data is a PNG of a size that can be shown. With kitty's protocol the terminal decodes it, as it does
 * with everything that it shows. For sixel a process without rights decodes it. */
bool picture_is_png(struct lair_text data);
/* Put @data, a PNG as above, into @out in the form that the terminal wants: on a line of its own, and no wider than
 * the terminal. If it cannot, it writes nothing and returns false. */
bool picture_show(enum graphics graphics, struct lair_text data, FILE *out);
