/* Pixels as a terminal of DEC's family takes them: six rows at a time, one colour after the other. */
#pragma once

#include "pixels.h"

#include <stdio.h>

/* At most 256 colours; finer ones become one. Returns 0 or -ENOMEM, and then nothing is written. */
int sixel_put(const struct pixels *pixels, FILE *out);
