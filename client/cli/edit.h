/* A prompt on a terminal: line editing and history. */
#pragma once

#include "proto/base.h"

#include "lair.h"
#include "terminal.h"

struct edit;

enum { EDIT_CHOICES_MAX = 500 };

/* Texts that may be put in at the cursor. Each begins with the last @typed characters before it. */
struct edit_choice {
	size_t typed, n;
	char *texts[EDIT_CHOICES_MAX]; /* owned by the caller of choices; NULL if there was no memory */
};

enum {
	_EDIT_E_SUCCESS,
	EDIT_E_EOF,	    /* Ctrl-D on an empty line, or a signal that ends us */
	EDIT_E_INTERRUPTED, /* Ctrl-C: the line is given up */
};

/* @signals: a signalfd for SIGINT and for the signals that end us. @terminal stays the caller's. It is asked what
 * it can show, which is noted in it. @on_tab is called for Tab, with the text before the cursor. Returns 0 or
 * -errno. */
int edit_new(struct edit **editp, int signals, struct terminal *terminal,
	     void (*on_tab)(void *userdata, struct lair_text before, struct edit_choice *choice), void *userdata);
/* While a line is awaited, @on_idle is called. It does all that is due, and returns the milliseconds until more
 * is due; -1: never. If it prints something, it first calls edit_aside or prints a newline, and says so by
 * *toldp. */
void edit_on_idle(struct edit *edit, int (*on_idle)(void *userdata, bool *toldp));
/* Keeps the history. Returns NULL. */
struct edit *edit_free(struct edit *edit);
/* A line with its newline, valid until the next one. It has several lines if they were pasted or are from the
 * history. @prompt must stay valid until then. The line begins with @indent blanks, which can be deleted. Returns 0
 * or EDIT_E_*. */
int edit_line(struct edit *edit, const char *prompt, unsigned indent, const char **linep);
/* For @on_idle, before it prints something: the line is taken away, and comes again below. */
void edit_aside(struct edit *edit);
/* Put @text into the history, as one entry. */
void edit_remember(struct edit *edit, const char *text);
