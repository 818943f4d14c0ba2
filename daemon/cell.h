/* One piece of code from a client, from the queue to its reply. */
#pragma once

#include "output.h"
#include "promise.h"

struct cell {
	struct list node;     /* in its session's queue */
	struct address reply; /* a promise: those who wait for it */
	uint64_t number;      /* in the session; 0 until it starts */
	uint64_t timeout;     /* microseconds, 0 = none */
	uint64_t started;
	bool stream, input;
	bool asking;   /* an `ask` is unanswered */
	char *prompt;  /* its words */
	bool password; /* its answer is not to be shown */
	bool timed_out;
	char *code;
	size_t code_size;
	struct output stdout_, stderr_;
};

/* Copies what it needs of @request. Returns 0 or -ENOMEM. */
int cell_new(struct cell **cellp, const struct exec_request *request, const struct address *reply, uint64_t timeout,
	     size_t output_limit);
/* It has begun. */
void cell_number(struct cell *cell, uint64_t number);
/* It reads from stdin: ask those who may answer, and whoever attaches until one has. Returns whether that may be.
 */
bool cell_ask(struct cell *cell, const struct ask_message *ask);
struct cell *cell_free(struct cell *cell); /* out of its queue first; returns NULL */

/* How a cell ended, beside what it wrote. */
struct verdict {
	int64_t returncode;
	const char *state;
	const char *cause;		   /* NULL = it simply ended */
	struct bytes text, error, blocked; /* from `done`, or absent */
	struct bytes unfaithful;	   /* why no checkpoint follows */
	uint64_t restored;		   /* rolled back to the state after this cell */
	uint64_t forgotten;		   /* checkpoints dropped since the last reply */
};

/* The final message of a cell. @session: NULL for a one-shot. Returns as client_send. */
int cell_reply(struct cell *cell, struct clients *clients, const char *session, const struct verdict *verdict);
