/* Starts the Python that a profile asks for, in the template. */
#pragma once

#include "proto/message.h"

struct python_report {
	char reason[1024]; /* after a failure: what failed and why */
	char version[32];
	msgpack_sbuffer missing; /* array of str: the optional preloads that were not found; empty if none */
	char **places;		 /* NULL-terminated, owned by the process for its life */
};

/* Everything until the process can be forked: environment, interpreter, imports, one thread. Returns 0, or -1 with
 * report->reason; then the process must end. So do the next two. */
int python_start(const struct configure_message *configure, struct python_report *report);

/* Everything that makes sessions fast: run once what they are likely to run, and make room for their objects. */
int python_warm(struct python_report *report);

/* In place of that, for the forks that do not wait for it: only make room. */
void python_make_room(void);

/* The last act before forks: rehearse a cell once more, collect garbage and freeze the rest, and lay out the
 * memory. */
void python_settle(void);

/* The Python of a profile that names none. Static. */
const char *python_default(void);
