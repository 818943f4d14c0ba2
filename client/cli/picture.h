/* Pictures on a terminal that can show them. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <stdio.h>

/* Which way of sending pictures the terminal understands, as far as it is known. */
enum graphics { GRAPHICS_NONE, GRAPHICS_KITTY };

/* Whether the terminal is one within another, so that nothing that is said of that is so, and no picture gets
 * through. */
bool picture_multiplexed(void);
/* What the environment says. */
enum graphics picture_graphics(void);

/* Whether @data is a PNG of a size that can be shown. A terminal decodes the rest, as it does whatever else it
 * shows. */
bool picture_is_png(struct lair_text data);
/* Put @data, of which that is so, into @out as the terminal wants it; on a line of its own, and no wider than the
 * terminal. */
void picture_show(struct lair_text data, FILE *out);
