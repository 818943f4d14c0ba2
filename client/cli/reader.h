/* The other end of the prompt: a process (prompt.py) that edits cells at the terminal, or finds where those end
 * that come from a pipe. It knows no session; what is in one, it asks here. */
#pragma once

#include "proto/base.h"

#include "lair.h"
#include "terminal.h"

#include <signal.h>

struct reader;

enum { READER_CHOICES_MAX = 500 };

/* Texts that may be put in at the cursor. Each begins with the last @typed characters before it. */
struct reader_choice {
	size_t typed, n;
	char *texts[READER_CHOICES_MAX]; /* owned by the caller of choices; NULL if there was no memory */
};

enum {
	_READER_E_SUCCESS,
	READER_E_EOF,  /* the person leaves, or a signal ends us */
	READER_E_MORE, /* the cell is not whole yet */
};

struct reader_options {
	int signals;	      /* a signalfd for SIGINT and for the signals that end us */
	const sigset_t *mask; /* of signals that the process has blocked */
	/* Of the terminal, which stays the caller's, and notes in it what the terminal says that it can show. NULL:
	 * lines come from a pipe, and none of what follows is called. */
	struct terminal *terminal;
	const char *const *commands; /* words that begin a line of lair's own, ended by NULL */
	/* For Tab, with the text before the cursor. */
	void (*on_tab)(void *userdata, struct lair_text before, struct reader_choice *choice);
	/* While a cell is awaited. It does all that is due, and returns the milliseconds until more is due; -1:
	 * never. Before it prints something, it calls reader_aside. */
	int (*on_idle)(void *userdata);
	void *userdata;
};

/* Returns 0 or -errno. */
int reader_new(struct reader **readerp, const struct reader_options *options);
/* The process has ended, and the terminal is as it was. Returns NULL. */
struct reader *reader_free(struct reader *reader);
/* A cell from the terminal, with its newlines, valid until the next call. *wholep: it was pasted, or is from the
 * history. Returns 0, READER_E_EOF, or -EPIPE if the process has ended by itself. */
int reader_cell(struct reader *reader, struct lair_text *cell, bool *wholep);
/* The next line of a pipe: whether a cell ends with it. Returns 0, READER_E_MORE or -EPIPE. */
int reader_line(struct reader *reader, struct lair_text line);
/* What is typed is taken away, until on_idle returns. */
void reader_aside(struct reader *reader);
