/* stdout and stderr, if they are terminals: text of a session goes to them through here. */
#pragma once

#include "paint.h"
#include "picture.h"
#include "screen.h"

struct terminal {
	bool is[2];		/* stdout is one, stderr is one */
	bool colour[2];		/* they are to be coloured */
	enum graphics graphics; /* of stdout */
	struct screen screen;
	struct paint paint;
};

/* @when: always, never, or NULL and auto: where there is a terminal, unless NO_COLOR says otherwise. */
void terminal_init(struct terminal *terminal, const char *when);

/* @text of a session as the stream shows it; *ownedp is the caller's to free. Without memory nothing of it. */
struct lair_text terminal_text(struct terminal *terminal, enum lair_stream stream, struct lair_text text,
			       char **ownedp);
/* The same of a value. */
struct lair_text terminal_value(struct terminal *terminal, struct lair_text text, char **ownedp);
/* A picture as stdout shows it, a PNG; nothing if it cannot, or @data is none. */
struct lair_text terminal_picture(const struct terminal *terminal, struct lair_text data, char **ownedp);
/* The cell has said all: what still has to be written, in this order, each *owned the caller's to free, and how
 * many sequences were left out. */
struct terminal_rest {
	enum lair_stream stream;
	struct lair_text text;
	char *owned;
};
void terminal_end(struct terminal *terminal, struct terminal_rest rests[static 2], uint64_t *droppedp);

/* How many columns and rows it has; 0: not known. */
void terminal_size(unsigned *columns, unsigned *rows);
