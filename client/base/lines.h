/* stdin, line by line, without blocking: bytes after a line wait for the next. */
#pragma once

#include "proto/base.h"

#include "lair.h"

enum {
	_LINES_E_SUCCESS,
	LINES_E_EMPTY, /* no whole line yet: poll, then fill */
	LINES_E_EOF,
	LINES_E_TOO_LONG, /* returned once, when the line begins; the rest of the line is dropped */
};

struct lines {
	int fd;
	char *data;
	size_t allocated, start, end;
	size_t size_max; /* of a line; 0: as much as memory allows */
	bool eof, skipping;
};

void lines_init(struct lines *lines, int fd);
void lines_deinit(struct lines *lines);

/* One read(). Returns 0, -ENOMEM or -errno. A terminal's input may continue after its end, so the end is forgotten
 * once lines_next has returned it. */
int lines_fill(struct lines *lines);
/* The next line, without its newline, valid until the next fill. The last line may have had no newline. Returns 0,
 * LINES_E_EMPTY, LINES_E_EOF or LINES_E_TOO_LONG. */
int lines_next(struct lines *lines, struct lair_text *line);
