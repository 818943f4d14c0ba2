/* The seam between the kernel and the language that its sessions speak. A directory of languages/ implements this
 * table, and one binary has one language. Values cross as packed msgpack: nothing but the language itself knows its
 * objects.
 *
 * A language uses the rooms below it: output.h writes, channel.h and interpreter.h talk to the router, cell options
 * come to `run`. It installs its own handler of SIGINT in `start`: SIGINT is blocked except while a cell, a task or
 * a question runs. Operations marked with (0) may be NULL. */
#pragma once

#include "proto/message.h"

#include <sys/types.h>

/* What a template finds out while it starts. */
struct language_report {
	char reason[1024];	 /* after a failure: what failed and why */
	msgpack_sbuffer missing; /* array of str: the optional preloads that were not found; empty if none */
	char **places; /* what every session must read: NULL-terminated, owned by the process; NULL: nothing */
};

/* What a cell or a task came to. The buffers come empty, and the language appends to them. */
struct language_result {
	int returncode;
	const char *cause;	/* static, of proto/causes.h; NULL if it simply ended */
	bool has_text;		/* the cell has a value to show */
	msgpack_sbuffer text;	/* the value as text */
	msgpack_sbuffer data;	/* a map: the value's other forms, by MIME type; empty: none */
	msgpack_sbuffer error;	/* a cell_error */
	msgpack_sbuffer report; /* a task_report */
};

/* Where a warden's interpreters work. */
struct language_place {
	const char *workspace, *scratch;
	bool programs, network, names;
};

/* A copy of a state runs again. */
struct language_thaw {
	pid_t threads_of; /* the threads of this process are here, too; 0: there are none */
	bool files;	  /* files of the workspace went back */
	bool branch;	  /* the original goes on; else this one takes its place */
};

enum language_move {
	MOVE_COPY,   /* make the copy of the workspace */
	MOVE_FILLED, /* it was made */
	MOVE_HOME    /* it is there, unless a cell has removed it */
};

struct language {
	const char *name; /* of the profile's `language =` */
	const char *(*version)(void);
	const char *program;   /* that runs it outside of sessions (0) */
	const char *rehearsal; /* the code of a short cell, which a fresh copy runs before its first one (0) */

	/* ---- in the template ---- */

	/* Everything until the process can be forked: environment, libraries, one thread. Returns 0, or -1 with
	 * report->reason; then the process must end. So does warm. */
	int (*start)(const struct configure_message *configure, struct language_report *report);
	/* Everything that makes sessions fast: run what they are likely to run, and make room for their objects. */
	int (*warm)(struct language_report *report); /* (0) */
	/* In place of that, for the forks that do not wait for it. */
	void (*make_room)(void); /* (0) */
	/* Set how many threads the libraries of a session may start. None exists afterwards. Returns as start. */
	int (*allow_threads)(unsigned n, struct language_report *report); /* (0) */
	/* The paths of all files and directories that decide what was loaded: an image is woken only if they are as
	 * they were. NULL-terminated, owned by the process; NULL: out of memory. */
	char **(*sources)(void); /* (0): no image is made */
	/* The last act before forks: lay out the memory. */
	void (*settle)(void); /* (0) */

	/* ---- in the warden ---- */

	/* It is in the cage, and its working directory is the workspace. Returns 0 or -1. */
	int (*move_in)(const struct language_place *place); /* (0) */
	/* Around fork(), which makes an interpreter. */
	void (*before_fork)(void);	   /* (0) */
	void (*after_fork)(bool is_child); /* (0) */

	/* ---- in an interpreter: copies of it ---- */

	/* In a fresh fork: make random numbers anew. */
	void (*born)(void); /* (0) */
	/* A frozen copy was forked and runs again. */
	void (*thawed)(const struct language_thaw *thaw); /* (0) */
	/* Why a frozen copy of this process would not be faithful: a sentence, valid until the next call; NULL if
	 * it would be. It is asked after every cell. */
	const char *(*unfaithful)(void); /* (0) */
	/* How many threads the language knows of, with the main one. */
	unsigned (*threads)(void); /* (0): one */
	/* Work in a copy of the workspace @root, of that @name, and tell in @text where it lies. Returns 0, or -1
	 * with the reason in @text. */
	int (*move)(enum language_move how, const char *root, struct bytes name, char *text,
		    size_t size); /* (0): chdir */

	/* ---- cells ---- */

	/* Around a cell, a task (@options is NULL) or a preparation (the same), while SIGINT is blocked. */
	void (*begin)(uint64_t cell, const struct cell_options *options); /* (0) */
	void (*end)(const struct cell_options *options);		  /* (0) */
	/* Run a cell. Number 0 is a rehearsal, which leaves no trace but output. SIGINT may arrive at any time. The
	 * traceback of an error has been written to stderr. */
	void (*run)(struct language_result *result, uint64_t cell, const struct cell_options *options);
	/* Whether the cell has tried something that may change a file. */
	bool (*may_have_changed)(void); /* (0): yes */
	/* An array of blocked_act, what was refused since the cell began; absent if nothing was. */
	struct bytes (*blocked)(void); /* (0) */
	/* Save or load variables, to or from @fd. */
	void (*task)(struct language_result *result, const struct task_message *task, int fd); /* (0) */
	/* What every session has from its first cell on. */
	void (*prepare)(const struct prepare_message *prepare); /* (0) */

	/* ---- questions ---- */

	/* Append the answer, a map. Returns NULL, or what is wrong with the question: valid until the next call.
	 * SIGINT may arrive at any time. */
	const char *(*question)(msgpack_sbuffer *answer, const struct question_message *question); /* (0) */
	/* In a child that ends afterwards: append the variables in short, an array of `description`, and tell how
	 * many more there are. Returns 0 or -1. */
	int (*describe)(msgpack_sbuffer *variables, uint64_t *morep); /* (0) */

	/* ---- between two cells ---- */

	/* Whether anything waits in the language's event loop. */
	bool (*waits)(void); /* (0) */
	/* Run the loop until @fd is readable. Returns whether it was interrupted. */
	bool (*idle)(int fd); /* (0) */

	/* ---- waiting, and being interrupted ---- */

	/* While the main thread waits, other threads of the session may run. @state: of wait_begin. */
	void *(*wait_begin)(void);     /* (0) */
	void (*wait_end)(void *state); /* (0) */
	/* Signal handlers of the language run now. Whether one of them ends what runs. */
	bool (*interrupted)(void); /* (0) */
	/* Drop interrupts that were taken, and are meant for nothing that runs. */
	void (*interrupts_forget)(void); /* (0) */
	/* A message comes while the main thread waits for the answer to a question of the cell. Whether it was
	 * another one that the language takes. */
	bool (*heard)(const struct wire_frame *message); /* (0) */
};

/* Of this binary: its directory of languages/ defines it. */
extern const struct language language;
