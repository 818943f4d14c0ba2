/* stdout and stderr, if they are terminals: text of a session goes to them through here. */
#pragma once

#include "base/paint.h"
#include "picture.h"
#include "screen.h"

struct terminal {
	bool is[2];		/* whether stdout is a terminal, and stderr */
	bool colour[2];		/* whether they get colours */
	enum graphics graphics; /* of stdout */
	struct screen screen;
	struct paint paint;
};

/* @when: always, never, or NULL and auto: on a terminal, unless NO_COLOR says otherwise. */
void terminal_init(struct terminal *terminal, const char *when);

/* @text of a session as the stream shows it; *ownedp is the caller's to free. Empty without memory. */
struct lair_text terminal_text(struct terminal *terminal, enum lair_stream stream, struct lair_text text,
			       char **ownedp);
/* The same for a value. */
struct lair_text terminal_value(struct terminal *terminal, struct lair_text text, char **ownedp);
/* A PNG as stdout shows it. Empty if stdout cannot show it, or if @data is no PNG. */
struct lair_text terminal_picture(const struct terminal *terminal, struct lair_text data, char **ownedp);
/* The cell has ended: the text that still has to be written, in this order, each *owned the caller's to free; and
 * how many sequences were left out. */
struct terminal_rest {
	enum lair_stream stream;
	struct lair_text text;
	char *owned;
};
void terminal_end(struct terminal *terminal, struct terminal_rest rests[static 2], uint64_t *droppedp);

/* How many columns and rows the terminal has; 0: not known. */
void terminal_size(unsigned *columns, unsigned *rows);
