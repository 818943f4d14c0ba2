/* One piece of code from a client, from the queue to its reply. */
#pragma once

#include "calls.h"
#include "displays.h"
#include "files/saved.h"
#include "output.h"
#include "promise.h"

/* Code of a client, or a task of ours: see saving.h. */
enum cell_task { CELL_CODE, CELL_SAVE, CELL_LOAD };

/* What is told of a load when it is done, and to whom. */
enum telling {
	TELL_NEXT, /* the next reply of a cell */
	TELL_OPEN, /* with the session's record */
	TELL_LOAD,
};

/* What a load has brought back, until somebody has been told. */
struct load_report {
	double age; /* of what was saved; 0: nothing was loaded */
	msgpack_sbuffer loaded, not_loaded;
	char damaged[SAVED_DAMAGE_SIZE]; /* why not, "": it was not damaged */
};

/* Whether there is something to tell. */
static inline bool load_report_any(const struct load_report *load_report)
{
	return load_report->age > 0 || load_report->damaged[0];
}

struct cell {
	struct list node;	 /* in its session's queue */
	struct address reply;	 /* a promise: those who wait for it */
	uint64_t number;	 /* in the session; 0 until it starts */
	uint64_t after;		 /* it began in the state after that cell */
	uint64_t timeout;	 /* microseconds, 0 = none */
	uint64_t asked, started; /* event_now(); asked 0: a router that did not know it has begun it */
	bool asking;		 /* an `ask` is unanswered */
	uint64_t asks;		 /* how many there have been */
	char *prompt;		 /* its words */
	bool password;		 /* its answer is not to be shown */
	bool timed_out;
	bool audited;		     /* the audit log tells of it, however often it has to be begun */
	bool written;		     /* its options are in the ledger */
	struct bytes encoded;	     /* code and options, owned */
	struct cell_options options; /* the same, decoded */
	struct user *user;	     /* who pays */
	uint64_t paid;		     /* for its options */
	struct output stdout_, stderr_;
	uint64_t stdout_stray, stderr_stray; /* how much of them was written before it began */
	struct displays displays;
	struct calls calls;
	uint64_t n_calls; /* so far */
	bool stands;	  /* its time: it asks, or a call waits */
	uint64_t rest;	  /* of its time, then */
	uint64_t stood;	  /* how long it stood since the last look at what its processes do */
	uint64_t stands_since;
	double cpu; /* that these had used then; 0: nobody has looked */

	enum cell_task task;
	int file;	     /* to save into; -1 */
	struct saved *saved; /* to load */
	struct saved_writing
		*writing; /* on its way to the disk, with the interpreter's `done` still in its socket */
	int not_begun;	  /* -errno: why it is not written */
	bool file_stored; /* whichever it is, it outlives the router */
	enum telling telling;
};

/* NULL, or a sentence about the option that cannot have such a value. Static. */
const char *cell_option_wrong(const struct exec_request *exec);
/* Append the options of @exec, encoded. Returns 0 or -ENOMEM. */
int cell_options_put(msgpack_sbuffer *buffer, const struct exec_request *exec);

/* What a cell with these encoded options takes of its user's room: they are in the ledger, too. */
uint64_t cell_price(struct bytes options);
/* Copies the encoded @options, and charges their price to the user of the promise's shelf. Returns 0, -EBADMSG or
 * -ENOMEM. */
int cell_new(struct cell **cellp, struct bytes options, const struct address *reply, uint64_t timeout,
	     size_t output_limit);
/* The same for a task. */
int cell_new_task(struct cell **cellp, enum cell_task task, const struct address *reply, uint64_t timeout);
/* It is the next, and has begun. */
void cell_number(struct cell *cell, uint64_t number);
/* It has begun only now. */
void cell_start(struct cell *cell);
/* The cell reads from stdin: ask the clients that may answer, and those that attach later until one has
 * answered. Returns whether it may ask. */
bool cell_ask(struct cell *cell, const struct ask_message *ask);
/* Milliseconds since it began, 0 if it has not. */
double cell_duration(const struct cell *cell);
struct cell *cell_free(struct cell *cell); /* out of its queue first; returns NULL */

/* How a cell ended, beside what it wrote. */
struct verdict {
	int64_t returncode;
	const char *state;
	const char *cause;				    /* NULL = it simply ended */
	struct bytes text, data, error, blocked, artifacts; /* from `done`, or absent */
	bool artifacts_more;
	struct bytes report; /* of a task */
	const struct load_report *load_report;
	struct bytes unfaithful; /* why no checkpoint follows */
	uint64_t restored;	 /* rolled back to the state after this cell */
	uint64_t forgotten;	 /* checkpoints dropped since the last reply */
	struct bytes effects;	 /* if the state went back: what was done since */
	uint64_t effects_more;
	struct bytes files; /* likewise: those that were brought back */
	uint64_t files_more;
	const char *files_stay, *files_unkept; /* NULL or "": nothing to tell */
	const char *language;		       /* NULL: Python */
	uint64_t birth;			       /* of its session */
	struct bytes ended;		       /* of the session that had the id before, if that is to be told */
};

/* Add to the refusals that the kernel has killed, for memory, a process that the cell had started. @buffer,
 * which must be empty, then holds what verdict->blocked points to. */
void verdict_tell_killed(struct verdict *verdict, msgpack_sbuffer *buffer);

/* The final message of a cell. @session: NULL for a one-shot. Returns as client_send. */
int cell_reply(struct cell *cell, struct clients *clients, const char *session, const struct profile *profile,
	       const struct verdict *verdict);

/* The running cell has shown something: write it down with the next commit. Returns 0 or -errno. */
struct ledger;
int cell_write_display(const struct cell *cell, struct ledger *ledger, const struct shown *shown);
