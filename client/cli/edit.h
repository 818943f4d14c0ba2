/* A prompt on a terminal: line editing and history. */
#pragma once

#include "proto/base.h"

struct edit;

enum {
	_EDIT_E_SUCCESS,
	EDIT_E_EOF,	    /* Ctrl-D on an empty line, or we are to end */
	EDIT_E_INTERRUPTED, /* Ctrl-C: the line is given up */
};

/* @signals: a signalfd on which SIGINT, and what is to end us, arrives. Returns 0 or -errno. */
int edit_new(struct edit **editp, int signals);
/* Keeps the history. Returns NULL. */
struct edit *edit_free(struct edit *edit);
/* A line with its newline, valid until the next. @prompt must stay until then. Returns 0 or EDIT_E_*. */
int edit_line(struct edit *edit, const char *prompt, const char **linep);
