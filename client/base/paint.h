/* Colours: for tracebacks as Python 3.13 has them, for the values at a prompt. They are put in before the screen's
 * filter, so a session's bytes are of any kind here, and what holds a sequence of its own is not painted. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <stdio.h>

/* A stream with tracebacks in it. Lines pass as they come; a line of a traceback passes when it is whole. */
struct paint {
	char *line, *source; /* the line that comes, and the line before it, for which marks may come */
	size_t size, allocated;
	size_t told;   /* so much of the line has passed */
	bool in_trace; /* the line belongs to a traceback */
	bool plain;    /* the line is not painted: too long, or not one of Python's */
};

void paint_pass(struct paint *paint, struct lair_text text, FILE *out);
/* Passes the rest as it is. Then the next stream begins. */
void paint_end(struct paint *paint, FILE *out);

/* Paints a value that looks like one of Python's own literals. Any other passes as it is. */
void paint_value(struct lair_text text, FILE *out);
