/* Colours: for tracebacks as Python 3.13 has them, for the values at a prompt. They are put in before the screen's
 * filter, so a session's bytes are of any kind here, and what holds a sequence of its own is not painted. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <stdio.h>

/* A stream with tracebacks in it. Lines go on as they come; those of a traceback when they are whole. */
struct paint {
	char *line, *source; /* the line that comes, and the one before it, whose marks may come */
	size_t size, allocated;
	size_t told;   /* so much of the line has gone on */
	bool in_trace; /* what comes is a traceback */
	bool plain;    /* the line is not painted: too long, or not one of Python's */
};

void paint_pass(struct paint *paint, struct lair_text text, FILE *out);
/* What waits goes on as it is, and the next stream begins. */
void paint_end(struct paint *paint, FILE *out);

/* A value that looks like one of Python's own literals; any other as it is. */
void paint_value(struct lair_text text, FILE *out);
