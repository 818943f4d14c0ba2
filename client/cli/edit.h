/* A prompt on a terminal: line editing and history. */
#pragma once

#include "proto/base.h"

#include "lair.h"
#include "terminal.h"

struct edit;

enum { EDIT_CHOICES_MAX = 500 };

/* What may stand at the cursor, in place of the last @typed characters, with which each begins. */
struct edit_choice {
	size_t typed, n;
	char *texts[EDIT_CHOICES_MAX]; /* owned by whoever asks; NULL where there was no memory */
};

enum {
	_EDIT_E_SUCCESS,
	EDIT_E_EOF,	    /* Ctrl-D on an empty line, or we are to end */
	EDIT_E_INTERRUPTED, /* Ctrl-C: the line is given up */
};

/* @signals: a signalfd on which SIGINT, and what is to end us, arrives. @terminal stays the caller's;
 * it is asked for what it can show, and that is noted there. @on_tab is asked for Tab, with what is
 * before the cursor. Returns 0 or -errno. */
int edit_new(struct edit **editp, int signals, struct terminal *terminal,
	     void (*on_tab)(void *userdata, struct lair_text before, struct edit_choice *choice), void *userdata);
/* While a line is awaited, @on_idle is asked for how many milliseconds there is nothing to be done, -1: for ever;
 * it may do what is due, and says by *toldp that it has printed something, after edit_aside or a newline of its
 * own. */
void edit_on_idle(struct edit *edit, int (*on_idle)(void *userdata, bool *toldp));
/* Keeps the history. Returns NULL. */
struct edit *edit_free(struct edit *edit);
/* A line with its newline, valid until the next; of several lines, if they were pasted or are of the history.
 * @prompt must stay until then. The line begins with @indent blanks, which can be deleted. Returns 0 or
 * EDIT_E_*. */
int edit_line(struct edit *edit, const char *prompt, unsigned indent, const char **linep);
/* Before @on_idle prints something: the line is taken away, and comes again below. */
void edit_aside(struct edit *edit);
/* Into the history, as one. */
void edit_remember(struct edit *edit, const char *text);
