/* One cell from the command line: its output as it comes, answers to its questions from stdin, and signals. */
#pragma once

#include "cli.h"
#include "lines.h"

#include <signal.h>

struct run {
	struct cli *cli;
	int signals;	    /* signalfd, owned */
	sigset_t mask;	    /* which signals were blocked before */
	struct lines input; /* stdin */
	bool answers;	    /* stdin may answer what the cell asks */
	bool events;	    /* output and result as JSON, line by line */

	/* of the running cell */
	struct lair_call *call;
	struct lair_call *answer; /* the last to a question of the cell; owned, or NULL */
	struct {
		char columns[32], lines[32];
		const char *env[CLI_ENV_MAX + 3];
	} size; /* of the terminal, as a part of the cell's environment */
	unsigned interrupts;
	double unheard_since; /* when it was interrupted, if it has not been said yet that it does not react; else 0
			       */
	bool writing;	      /* for whoever reads what it has printed, and may not */
	int stop;	      /* the signal that ends us, 0 if none has come */
	double stop_since;    /* when it came */
	bool asking, hidden;
	bool in_line; /* the last output did not end a line */
	struct {
		char bytes[3];
		size_t size;
	} cut[2]; /* of each stream, for events: the beginning of a character, whose end is still to come */
	struct {
		double elapsed, cpu;
	} last_alive;
	bool alive; /* a line on the terminal says that the cell still runs */
};

/* Takes SIGINT, SIGTERM and SIGHUP: from here on they only arrive in a run, or on run->signals. Returns 0 or
 * -errno. */
int run_init(struct run *run, struct cli *cli);
/* From here on signals do what they did before. */
void run_deinit(struct run *run);

/* Run @exec, whose callbacks are filled in here, and wait for what comes of it. The first SIGINT interrupts the
 * cell, the second says what the third does, which kills it; SIGTERM, SIGHUP and a stdout that nobody reads do
 * both. Returns 0 and *callp, answered, the caller's; or the exit status, having said why. */
int run_cell(struct run *run, struct lair_call **callp, struct lair_exec *exec);

/* The same with a cell that runs already, or has ended. */
int run_attach(struct run *run, struct lair_call **callp, struct lair_attach *attach);

/* To stdout or stderr. As long as there is no room signals count as above; one that nobody reads any more is the
 * end of the run. */
void run_write(struct run *run, int fd, struct lair_text text);
/* The same with the value of a last expression, on stdout. */
void run_value(struct run *run, struct lair_text text);
/* The pictures of a bundle: on a terminal that can show them, and in files where there is a place for them. Returns
 * whether the terminal shows one. */
bool run_pictures(struct run *run, struct lair_items data);
/* The same with a document on a line of its own, which is released. */
void run_print(struct run *run, json_t *document);

/* Wait for any other call. SIGINT, and what ends us, gives up waiting: -EINTR. Else returns as lair_wait. */
int run_wait(struct run *run, struct lair_call *call);

/* What was refused and has not ended the cell: its error would say so. */
void run_blocked_notice(const struct lair_result *result);
/* What became of the session, if it is not what it was: one line on stderr. */
void run_notice(const struct lair_result *result);
