/* One cell from the command line: its output as it comes, answers to its questions from stdin, and signals. */
#pragma once

#include "base/lines.h"
#include "cli.h"

#include "base/text.h"
#include "offer.h"

#include <signal.h>

struct run {
	struct cli *cli;
	int signals; /* signalfd, owned */
	struct event_source on_lair, on_signal, on_input;
	sigset_t mask;	     /* which signals were blocked before */
	struct lines input;  /* stdin */
	bool answers;	     /* stdin may answer the questions of the cell */
	bool events;	     /* output and result as JSON, line by line */
	struct offer *offer; /* functions that cells may call; NULL: none */

	/* of the running cell */
	struct lair_call *call;
	struct approval *approvals; /* calls that ask, in the order in which they did; owned */
	bool approving;		    /* the first of them is asked about */
	struct {
		const struct lair_attach *attach; /* the cell is another program's, and so are its functions */
		struct lair_call *call;		  /* asks which of its calls wait; owned, or NULL */
		uint64_t *told; /* the calls that were told: twice the number, and 1 if held; owned */
		size_t n_told;
	} others;
	struct lair_call *answer; /* the last to a question of the cell; owned, or NULL */
	struct {
		char columns[32], lines[32];
		const char *env[CLI_LIST_MAX + 3];
	} size; /* of the terminal, for the cell's environment */
	unsigned interrupts;
	struct timer unheard; /* armed when the cell was interrupted, until it is said that it does not react */
	bool writing;	      /* output is being written, and maybe nobody reads it */
	int stop;	      /* the signal that ends us, 0 if none has come */
	double stop_since;    /* when it came */
	struct timer patience;
	int error; /* of the handle */
	bool asking, hidden;
	bool in_line;		   /* the last output did not end a line */
	struct text_rest rests[2]; /* of each stream, for events */
	struct {
		double elapsed, cpu;
	} last_alive;
	bool alive;	 /* a line on the terminal says that the cell still runs */
	char doing[200]; /* the work that is done for the cell, as last shown; "": none */
};

/* Takes SIGINT, SIGTERM and SIGHUP: from now on they arrive only in a run, or on run->signals. Returns 0 or
 * -errno. */
int run_init(struct run *run, struct cli *cli);
/* From now on signals do what they did before. */
void run_deinit(struct run *run);

/* Run @exec, whose callbacks and functions are set here, and wait for its result. The first SIGINT interrupts the
 * cell. The second says what the third does, which kills it. SIGTERM, SIGHUP and a stdout that nobody reads
 * interrupt it and then kill it. Returns 0 and *callp, answered, the caller's; or the exit status, having said why.
 */
int run_cell(struct run *run, struct lair_call **callp, struct lair_exec *exec);

/* The same with a cell that runs already, or has ended. */
int run_attach(struct run *run, struct lair_call **callp, struct lair_attach *attach);

/* Write to stdout or stderr. While there is no room, signals count as above. If nobody reads any more, the run
 * ends. */
void run_write(struct run *run, int fd, struct lair_text text);
/* Write the value of a last expression to stdout, in the same way. */
void run_value(struct run *run, struct lair_text text);
/* Show the pictures of a bundle: on a terminal that can show them, and in files if there is a directory for them.
 * Returns whether the terminal shows one. */
bool run_pictures(struct run *run, struct lair_items data);
/* Write a document on a line of its own, in the same way. It is released. */
void run_print(struct run *run, json_t *document);

/* Wait for any other call. SIGINT, or a signal that ends us, ends the wait: -EINTR. Else returns as lair_wait. */
int run_wait(struct run *run, struct lair_call *call);

/* approval.c: whether a person is at the terminal who can be asked. */
bool approval_possible(const struct run *run);
/* A call asks to be approved, and the person at the terminal is asked; or told who may answer. */
void approval_begin(struct run *run, const struct lair_waiting *waiting);
/* Tell the calls that wait in a cell that was attached to without functions: nobody else may be there to see them.
 */
void approval_look(struct run *run);
void others_end(struct run *run);
/* It does not ask any more. */
void approval_cancel(struct run *run, uint64_t number);
/* None of them does. */
void approvals_end(struct run *run);
/* Ask about the next one, if nothing else is asked. */
void approval_ask(struct run *run);
/* The cell has written something: ask once more, below it. */
void approval_repeat(struct run *run);
/* Something else is asked. */
void approval_put_off(struct run *run);
/* A line of input; absent: its end. */
void approval_answer(struct run *run, struct lair_text line);
