/* liblair: live, caged Python sessions from C.
 *
 *	struct lair *lair = NULL;
 *	struct lair_call *call = NULL;
 *	int r;
 *
 *	r = lair_new(&lair, NULL);
 *	if (!r)
 *		r = lair_connect(lair);
 *	if (!r)
 *		r = lair_exec(lair, &call, &(struct lair_exec){.session = "a", .code = lair_text("6 * 7")});
 *	if (!r)
 *		r = lair_wait(call, LAIR_FOREVER);
 *	if (!r)
 *		printf("%.*s\n", (int)lair_result(call)->text.size, lair_result(call)->text.data);
 *	else
 *		fprintf(stderr, "%s\n", lair_error(lair));
 *	lair_call_free(call);
 *	lair_free(lair);
 *
 * A request is a call: the program starts it, waits for it, reads its answer and frees it. Any number of calls may
 * be pending on one handle; each is answered exactly once. A program with an event loop does not wait: it watches
 * lair_fd and runs lair_process.
 *
 * Returns: 0 success; negative -errno; positive LAIR_E_*. After a failure lair_error has a sentence for a person.
 *
 * Threads: one thread at a time may use a handle and its calls; different handles share nothing. A connected handle
 * does not survive fork: the child must neither use nor free it.
 *
 * Zero is the default of every field of every struct here. Initialise the structs and set the fields that you need:
 * later versions will add fields. */
#ifndef LAIR_H
#define LAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum lair_e {
	/* The daemon refused: the codes of the protocol. */
	LAIR_E_NO_SESSION = 1, /* there is no session of that id, or it is not yours */
	LAIR_E_BUSY,	       /* not while a cell runs */
	LAIR_E_LIMIT,	       /* a limit was reached; the sentence names it */
	LAIR_E_BAD_REQUEST,    /* a value is wrong; the sentence names it */
	LAIR_E_TOO_LARGE,      /* the code or the request is over its limit */
	LAIR_E_DENIED,	       /* you are not allowed to do this */
	LAIR_E_GONE,	       /* the session ended or was reset before this could be done */
	LAIR_E_UNSUPPORTED,    /* this daemon is of another version */
	LAIR_E_INTERNAL,       /* the daemon's fault */
	LAIR_E_NO_FILE,	       /* there is no file of that path */
	LAIR_E_SETTINGS,       /* something is wrong with the daemon's settings; the sentence says what and where */
	/* Errors of the client itself. */
	LAIR_E_NO_DAEMON, /* nothing answers on the socket */
	LAIR_E_START,	  /* a daemon could not be started */
	LAIR_E_LOST,	 /* the daemon has ended, or does not answer any more; it is unknown whether it has done the
			    request. If only the connection ends, it is made again, and requests continue, except
			    pieces of files, which get this error */
	LAIR_E_PROTOCOL, /* the process that answers does not speak the protocol */
};

/* The name of the code in the protocol, such as "no_session" for LAIR_E_NO_SESSION; "error" if there is none.
 * Static. */
const char *lair_code(int error);

/* For timeouts, which are in seconds. 0 looks once and does not wait. */
#define LAIR_FOREVER (-1.0)

/* Borrowed text or bytes, not terminated. data == NULL: absent. */
struct lair_text {
	const char *data;
	size_t size;
};

static inline struct lair_text lair_text(const char *string)
{
	struct lair_text text = {string, string ? strlen(string) : 0};

	return text;
}

/* ---- the handle ---- */

struct lair;
struct lair_call;

struct lair_options {
	const char *socket; /* NULL: $LAIR_SOCKET, else the default path */
	const char *config; /* sessions.conf for a daemon that has to be started; NULL: the daemon's choice */
	bool no_start;	    /* do not start a daemon: it is an error if none answers */
	double timeout;	    /* for connecting, starting included; 0: 30 seconds */
	size_t batch;	    /* lair_process reads no more once it has read so many bytes; 0: 1 MiB */
	bool discreet;	    /* errors do not say where the socket is */
};

/* A handle that is not connected yet. The strings of @options are copied; NULL stands for all defaults.
 * Returns 0, -ENOMEM or -ENAMETOOLONG. */
int lair_new(struct lair **lairp, const struct lair_options *options);

/* Disconnects. Pending calls end with LAIR_E_LOST, without their on_done. Afterwards calls can only be read and
 * freed. NULL is fine. Returns NULL. */
struct lair *lair_free(struct lair *lair);

/* Connect; start a daemon if none answers. May be called again after LAIR_E_LOST. Returns 0, LAIR_E_NO_DAEMON,
 * LAIR_E_START, LAIR_E_DENIED (the socket's directory cannot be trusted), LAIR_E_UNSUPPORTED, LAIR_E_LOST,
 * LAIR_E_PROTOCOL, -ETIMEDOUT, -EINTR or -errno. */
int lair_connect(struct lair *lair);

/* The last failure on this handle, one sentence without a newline. Valid until the next function fails. */
const char *lair_error(const struct lair *lair);
/* If a setting of the daemon decided that: which, in which file, for its operator. "" if none did. No model and no
 * stranger should read it: it may have a path of the host. Valid until the next function fails. */
const char *lair_error_setting(const struct lair *lair);

/* The path of the socket. Valid as long as the handle. */
const char *lair_socket(const struct lair *lair);

/* Whether the last lair_connect had to start the daemon. */
bool lair_started(const struct lair *lair);

/* A descriptor that is readable when lair_process has something to do; -1 while not connected. Only poll it; the
 * handle closes it. It is a new one after every lair_connect. */
int lair_fd(const struct lair *lair);

/* Process the messages that have arrived, up to a batch, without blocking, and run the callbacks of its calls.
 * Returns 0, LAIR_E_LOST (every call has ended) or -errno. */
int lair_process(struct lair *lair);

/* ---- requests ----
 *
 * Each function sends a request and returns at once. It returns 0 and a call in *callp, which the caller frees. On
 * failure *callp is untouched: LAIR_E_LOST (not connected), LAIR_E_TOO_LARGE, -EAGAIN (a thousand requests are
 * pending), -ENOMEM or -errno. Strings need to be valid only until the function returns. */

enum lair_stream { LAIR_STDOUT, LAIR_STDERR };

struct lair_display;
struct lair_alive;
struct lair_function;
struct lair_calling;
struct lair_waiting;

/* Callbacks run inside lair_wait, lair_process or lair_connect. Their arguments are valid until they return. They
 * may start calls, but must not wait, process, connect or free the handle or a call. */
struct lair_exec {
	const char *session; /* NULL: a one-shot, whose session ends with its cell */
	const char *profile; /* NULL: the session's, or "default" */
	/* What the session is to have beside its profile, NAME=VALUE, ended by NULL; or NULL. read, write: a
	 * directory of the daemon's host, by its real path, the first of which the session starts in; memory, cpu,
	 * network: as in sessions.conf. The daemon's own user may ask for anything, others for what the profile
	 * allows. After a ? it is a wish. A session that is open already must have it. */
	const char *const *settings;
	struct lair_text code;
	double timeout;	       /* of the cell, in seconds; 0: the profile's */
	bool unlimited;	       /* without @timeout: a person waits, so the cell has as long as the profile allows */
	const char *key;       /* a name for its result; NULL: a new name */
	bool detach;	       /* do not wait for the result: lair_detached */
	bool reload;	       /* first import again the modules that were edited in the workspace */
	bool values;	       /* an error has the values of small local variables */
	const char *figure;    /* the format of figures: "png" or "svg"; NULL: png */
	const char *directory; /* the cell's working directory, in the workspace; NULL: where the session is */
	const char *const *env;	 /* NAME=value for this cell only, ended by NULL; or NULL */
	const char *const *argv; /* sys.argv for this cell only, ended by NULL; NULL: as it is */
	const char *notebook;	 /* how a notebook wants it run, in JSON: proto/PROTOCOL.md, "Cells of notebooks" */
	/* Projects that are installed in the session before the cell runs, each with its versions ("polars",
	 * "duckdb==1.*"), ended by NULL; or NULL. The cell's time limit does not run meanwhile. */
	const char *const *packages;
	uint64_t birth; /* run the cell only in the session of this birth (lair_result has it); 0: in any.
			   LAIR_E_GONE: that session has ended */
	/* If set, on_output gets output as the cell writes it, and on_display gets what the cell shows. Then
	 * neither is in the result. */
	void (*on_output)(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata);
	void (*on_display)(struct lair_call *call, const struct lair_display *display, void *userdata);
	/* About every second while a cell runs for long, and whenever something else is done for it. */
	void (*on_alive)(struct lair_call *call, const struct lair_alive *alive, void *userdata);
	/* If set, the cell may read from stdin: answer with lair_input. If not, the cell gets an EOFError. */
	void (*on_ask)(struct lair_call *call, struct lair_text prompt, bool password, void *userdata);
	/* Functions of this program that the cell may call: see "functions" below. With @detach the calls wait
	 * until a program attaches that answers them. If it is set and there are none, calls of what laird itself
	 * does for a cell, such as installing packages, still ask here for approval: on_held. */
	const struct lair_function *functions;
	size_t n_functions;
	bool again; /* a call of a function with an effect may repeat a call that was rolled back */
	void (*on_call)(struct lair_call *call, struct lair_calling *calling, void *userdata);
	void (*on_cancel)(struct lair_call *call, uint64_t number, void *userdata);
	void (*on_held)(struct lair_call *call, const struct lair_waiting *waiting, void *userdata);
	void *userdata;
};

/* How much of a cell's output has come: bytes, and displays. */
struct lair_point {
	uint64_t out, err, displays;
};

/* The result of a cell that another program started, or that was fetched before, by its number or its key. Waits
 * until there is a result. Its output comes from the beginning, as far as it is kept. LAIR_E_GONE: the result is
 * unknown or expired. */
struct lair_attach {
	const char *session; /* NULL: a one-shot, which has no name but its key */
	uint64_t cell;	     /* 0: by @key */
	const char *key;
	struct lair_point from; /* with on_output: skip the output before this point */
	/* As in struct lair_exec. on_ask also gets a question that the cell has asked already. */
	void (*on_output)(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata);
	void (*on_display)(struct lair_call *call, const struct lair_display *display, void *userdata);
	void (*on_alive)(struct lair_call *call, const struct lair_alive *alive, void *userdata);
	void (*on_ask)(struct lair_call *call, struct lair_text prompt, bool password, void *userdata);
	/* If on_call is set, this program answers the calls of functions that the cell makes, also those that are
	 * out already. The other two may be set, too. */
	void (*on_call)(struct lair_call *call, struct lair_calling *calling, void *userdata);
	void (*on_cancel)(struct lair_call *call, uint64_t number, void *userdata);
	void (*on_held)(struct lair_call *call, const struct lair_waiting *waiting, void *userdata);
	void *userdata;
};

int lair_hello(struct lair *lair, struct lair_call **callp);
/* With a ? behind its name, @profile is a wish: without such a profile, or if it is for other users, the session
 * gets "default"; and a session that is there already may have any. */
#define LAIR_WORKBENCH "workbench?" /* for a person's own work */
int lair_open(struct lair *lair, struct lair_call **callp, const char *session, const char *profile);
/* The same with @settings, as those of struct lair_exec. */
int lair_open_with(struct lair *lair, struct lair_call **callp, const char *session, const char *profile,
		   const char *const *settings);
int lair_exec(struct lair *lair, struct lair_call **callp, const struct lair_exec *exec);
int lair_attach(struct lair *lair, struct lair_call **callp, const struct lair_attach *attach);
/* Have the output since @from once more, of a pending call of lair_attach: it comes to on_output and on_display,
 * after the output that is on its way, and before new output. */
int lair_repeat(struct lair_call *attach, struct lair_point from);
/* The cells that lair_attach can get: those of @session, or the user's own one-shots. */
int lair_results(struct lair *lair, struct lair_call **callp, const char *session);
/* Answer the last question of the cell of @exec that on_ask got; an absent @line means end of file. A newline is
 * not part of it. -EILSEQ: it is not UTF-8, and the cell still waits. The outcome is LAIR_E_GONE if that question
 * is not open any more: the cell was given nothing. */
int lair_input(struct lair *lair, struct lair_call **callp, const struct lair_call *exec, struct lair_text line);
int lair_interrupt(struct lair *lair, struct lair_call **callp, const char *session);
/* Interrupt the cell of @exec, or take it from the queue. */
int lair_cancel(struct lair *lair, struct lair_call **callp, const struct lair_call *exec);
/* As lair_interrupt and lair_cancel, but a running cell is killed, even if it does not react. Its session goes back
 * to the state before the cell. */
int lair_kill(struct lair *lair, struct lair_call **callp, const char *session);
int lair_kill_cell(struct lair *lair, struct lair_call **callp, const struct lair_call *exec);
int lair_reset(struct lair *lair, struct lair_call **callp, const char *session);
/* Reset all variables but those in @keep, a list that NULL ends. The interpreter stays. LAIR_E_BAD_REQUEST: one of
 * them does not exist. */
int lair_keep(struct lair *lair, struct lair_call **callp, const char *session, const char *const *keep);
int lair_shutdown(struct lair *lair, struct lair_call **callp, const char *session);
int lair_list(struct lair *lair, struct lair_call **callp);
int lair_info(struct lair *lair, struct lair_call **callp, const char *session);
/* As lair_info, for the session @birth of that id; 0: for any. The session counts as used, so its idle_ttl begins
 * anew. LAIR_E_GONE: that session has ended. */
int lair_stay(struct lair *lair, struct lair_call **callp, const char *session, uint64_t birth);
int lair_stats(struct lair *lair, struct lair_call **callp);
/* The sets of packages that the daemon has; from another user's daemon, those that your own sessions have. @prune:
 * those that nobody has are removed, and are the list. LAIR_E_DENIED: that is for the daemon's user and root;
 * LAIR_E_GONE: no profile allows packages. */
int lair_packages(struct lair *lair, struct lair_call **callp, bool prune);
/* Stop the daemon. It saves the sessions that are to be saved, answers, and ends. LAIR_E_DENIED: it is another
 * user's; LAIR_E_LOST: it ended before it could answer. */
int lair_stop(struct lair *lair, struct lair_call **callp);
/* Have the daemon read its settings again, for sessions that are opened from now on. LAIR_E_DENIED: it is another
 * user's; LAIR_E_SETTINGS: something is wrong with them, and nothing has changed. */
int lair_reload(struct lair *lair, struct lair_call **callp);

/* Questions about the state of a session. They are answered between two cells; while a cell runs: LAIR_E_BUSY. The
 * answer is text from the session: show it, and trust none of it. LAIR_E_LIMIT: it took too long. */
struct lair_inspect {
	const char *session;
	struct lair_text code; /* a name, or code */
	uint64_t cursor;       /* how many characters of the code are before the cursor; 0: all */
	bool source;	       /* the source, too */
};

/* The variables. @forget: delete these first; a list that NULL ends, or NULL. LAIR_E_BAD_REQUEST: one of them does
 * not exist. */
int lair_vars(struct lair *lair, struct lair_call **callp, const char *session, const char *const *forget);
/* Completions at @cursor, which counts as in struct lair_inspect. */
int lair_complete(struct lair *lair, struct lair_call **callp, const char *session, struct lair_text code,
		  uint64_t cursor);
int lair_inspect(struct lair *lair, struct lair_call **callp, const struct lair_inspect *inspect);
/* The last @n cells; 0: all that are remembered. Never busy. */
int lair_history(struct lair *lair, struct lair_call **callp, const char *session, uint64_t n);
/* Take the output that was written since the last cell ended. Otherwise the output of the next cell begins with it.
 * Never busy. */
int lair_stray(struct lair *lair, struct lair_call **callp, const char *session);

/* Questions about code alone. Without a session an interpreter of the profile is made for them. */
struct lair_code {
	const char *session, *profile; /* one of them; if neither is set: the profile "default" */
	struct lair_text code;
};

/* Whether the code compiles, and keeps the rules of the profile. */
int lair_check(struct lair *lair, struct lair_call **callp, const struct lair_code *code);
/* Whether a prompt should ask for another line. */
int lair_is_complete(struct lair *lair, struct lair_call **callp, const struct lair_code *code);

/* Save the variables of a session, so that they outlive it. Load the saved variables, into a new session if there
 * is none of that id. When a session is opened, even by a cell, variables that are saved under its id are loaded
 * without being asked for. LAIR_E_UNSUPPORTED: nothing could be saved. LAIR_E_GONE: nothing is saved. */
int lair_save(struct lair *lair, struct lair_call **callp, const char *session);
int lair_load(struct lair *lair, struct lair_call **callp, const char *session);
/* The saved states of the user; root gets those of all users. With @session only that state, with the names of its
 * variables (LAIR_E_GONE: there is none). */
int lair_saves(struct lair *lair, struct lair_call **callp, const char *session);
/* Delete a saved state. LAIR_E_GONE: there is none. */
int lair_unsave(struct lair *lair, struct lair_call **callp, const char *session);

/* Checkpoints: states of a session between two cells, to which it can go back. LAIR_E_BUSY while the session runs
 * a cell, except for lair_checkpoints. LAIR_E_GONE: the state is not remembered any more. */
struct lair_branch {
	const char *session; /* begin as this session */
	const char *branch;  /* the id of the new session */
	const char *from;    /* a checkpoint of @session; NULL: its present state */
	/* Its files: its own, which are those of its state; or the same as @session's. Neither: its own, if the
	 * profile has files = restore. LAIR_E_TOO_LARGE: then they are not all kept. */
	bool files, share;
	/* Begin in the middle of the cell that @session runs, which waits for calls: both sessions continue it. The
	 * answer has the key of the branch's own. */
	bool at_call;
};

/* Keep the present state. If it has a @name (else NULL), it is forgotten only to make room in memory. */
int lair_checkpoint(struct lair *lair, struct lair_call **callp, const char *session, const char *name);
int lair_checkpoints(struct lair *lair, struct lair_call **callp, const char *session);
/* @name: the name of a checkpoint, or the number of a cell for the state after it. @keep_files: the files are
 * unchanged, else they are restored with the state. */
int lair_restore(struct lair *lair, struct lair_call **callp, const char *session, const char *name,
		 bool keep_files);
int lair_drop(struct lair *lair, struct lair_call **callp, const char *session, const char *name);
/* Go @n states back; 0 is the same as 1. @keep_files: likewise. */
int lair_undo(struct lair *lair, struct lair_call **callp, const char *session, uint64_t n, bool keep_files);
int lair_branch(struct lair *lair, struct lair_call **callp, const struct lair_branch *branch);

/* How two states differ, see lair_difference. @since, @until: as in lair_restore; NULL: the state before the last
 * cell, and the present one. */
int lair_diff(struct lair *lair, struct lair_call **callp, const char *session, const char *since,
	      const char *until);

/* Files of a session. Paths are bytes, in its workspace. Each request moves a piece of one file, or lists a part
 * of one directory. The answer says where the next request continues. Cells may run meanwhile. */
#define LAIR_PIECE ((size_t)1 << 20) /* the largest piece */

struct lair_files_of {
	const char *session;
	struct lair_text path; /* absent: the workspace itself */
	bool host;	       /* @path is a path of the host, which the profile's import must allow */
	uint64_t after;	       /* lair_listing.next of the last answer; 0: begin */
};

struct lair_get {
	const char *session;
	struct lair_text path;
	uint64_t offset, size; /* size 0: a whole piece */
	uint64_t file; /* lair_piece.file of the first piece: LAIR_E_GONE if the path has another file now */
};

struct lair_put {
	const char *session;
	struct lair_text path;	   /* with the first piece */
	uint64_t transfer, offset; /* with the others: from the last answer */
	struct lair_text data;
	unsigned mode;	/* with the first piece: permissions; 0: 0644 */
	bool more;	/* this is not the last piece */
	bool directory; /* make a directory instead of a file */
};

struct lair_copy_in {
	const char *session;
	struct lair_text source; /* a file of the host, which the profile's import must allow */
	struct lair_text path;	 /* absent: the last name of @source */
	uint64_t transfer;	 /* from the last answer; 0: begin */
};

int lair_files(struct lair *lair, struct lair_call **callp, const struct lair_files_of *files);
int lair_get(struct lair *lair, struct lair_call **callp, const struct lair_get *get);
/* The file appears, complete, with its last piece. */
int lair_put(struct lair *lair, struct lair_call **callp, const struct lair_put *put);
int lair_copy_in(struct lair *lair, struct lair_call **callp, const struct lair_copy_in *copy);

/* ---- functions ----
 *
 * The cell of an exec may call the exec's functions as tools.NAME(...). Each call comes to on_call as a struct
 *lair_calling, which belongs to the program until it is answered: at once, or later, by any thread. Meanwhile the
 *cell waits, and its time limit does not run.
 *
 *	static void on_call(struct lair_call *call, struct lair_calling *calling, void *userdata)
 *	{
 *		struct lair_text arguments = lair_calling_arguments(calling);    -- {"a": 2, "b": 3}
 *
 *		if (lair_return(calling, lair_text("5")))
 *			lair_raise(calling, "ValueError", "that is not JSON");
 *	}
 *
 * Each call comes once, even if the connection is made again meanwhile, or the daemon's router dies. If the program
 * itself ends, another one can answer: lair_attach gives it the open calls. */

struct lair_function {
	const char *name;	      /* a name of Python; with dots: in a namespace */
	const char *schema, *returns; /* JSON Schema of the arguments and of the value; NULL: anything */
	const char *doc;	      /* the first line is its summary */
	bool effect;		      /* it changes something, so it is not repeated in silence after going back */
	bool ask;		      /* a person must approve each call: on_held */
	bool caution;		      /* the same, unless the profile's functions_allow names it */
	double timeout;		      /* seconds for one call; 0: the profile's call_timeout */
	const char *server, *tool;    /* the names that an MCP server has for itself and for its tool, or NULL */
};

/* For whichever thread has the call. None of them uses the handle. */
uint64_t lair_calling_number(const struct lair_calling *calling); /* within the cell, from 1 on */
/* The name of the function, as it was offered. Valid as long as @calling. */
struct lair_text lair_calling_function(const struct lair_calling *calling);
/* An object in JSON; bytes are in base64. Absent without memory. Valid as long as @calling. */
struct lair_text lair_calling_arguments(struct lair_calling *calling);
/* The same in msgpack, where bytes are bytes. */
struct lair_text lair_calling_packed(const struct lair_calling *calling);
/* A name that no other call has, and that this one keeps: a key of idempotency for what the function does. */
struct lair_text lair_calling_key(const struct lair_calling *calling);
/* Whether the cell waits for it no longer. */
bool lair_calling_cancelled(const struct lair_calling *calling);

/* Answer a call. These may be used by any thread, also inside callbacks. 0: @calling is taken, and the answer is on
 * its way, or the cell waits for none. -EINVAL (@value is not JSON, or not msgpack) and -ENOMEM: nothing is done,
 * and
 * @calling is still the program's. If the daemon does not take a value, because it is too large for example, the
 * cell gets an error that says so. */
int lair_return(struct lair_calling *calling, struct lair_text value);	      /* JSON; absent: null */
int lair_return_packed(struct lair_calling *calling, struct lair_text value); /* msgpack */
/* An exception in the cell: of the builtin class @name if there is one, else of a class of that name below
 * tools.FunctionError. */
int lair_raise(struct lair_calling *calling, const char *name, const char *text);

/* Put a call aside, since it may take hours: "Anna has been asked". It may be answered as before, or by any program
 * of this user with lair_answer_call, also if this program ends. Returns as lair_return, but does not take
 * @calling.
 */
int lair_hold(struct lair_calling *calling, const char *why);

/* Leave a call unanswered, for another program to answer. To free an unanswered call is the same. NULL is fine.
 * Returns NULL. */
struct lair_calling *lair_calling_free(struct lair_calling *calling);

/* on_cancel: the cell waits no longer for call @number, since it was interrupted, another program has answered,
 * or time is up. A struct lair_calling of it must still be answered or freed. If the request itself ends, its
 * calls are cancelled without it.
 *
 * on_held: a call asks for approval, and is not to be done before. lair_answer_call approves it, and then
 * the call comes to on_call; or refuses it. Without on_held another program has to answer. */

/* An answer, also by a program that is not the provider of the function. */
struct lair_answer {
	const struct lair_call *exec; /* one of these three: an exec or attach of this handle, */
	const char *key;	      /* the key of the exec, */
	const char *session;	      /* or the session */
	uint64_t cell;		      /* 0: whichever runs */
	uint64_t number;
	bool approve;		  /* it asks, and is to be done */
	struct lair_text value;	  /* JSON; absent with @approve and @error */
	const char *error, *text; /* an exception, as for lair_raise; PermissionError is a refusal */
};

/* The calls of @session that wait; NULL: of all sessions of the user. Root gets those of all users. */
int lair_calls(struct lair *lair, struct lair_call **callp, const char *session);
/* Answered when the calls that one may see are not those of the turn @seen any more, or after so many seconds; at
 * once if @seen is 0. */
int lair_watch_calls(struct lair *lair, struct lair_call **callp, uint64_t seen, double seconds);
/* -EINVAL: the value is not JSON. LAIR_E_GONE: no such call waits. LAIR_E_BAD_REQUEST: to approve, but it does not
 * ask. */
int lair_answer_call(struct lair *lair, struct lair_call **callp, const struct lair_answer *answer);

/* msgpack as JSON, terminated, the caller's to free. Bytes are in base64, and numbers that JSON does not have are
 * null. NULL without memory, or if it is no msgpack. */
char *lair_json(struct lair_text packed);

/* ---- calls ---- */

/* Wait for the answer; the callbacks of all calls run meanwhile. Returns the same as lair_outcome; or -ETIMEDOUT or
 * -EINTR (a signal handler ran). In these two cases the call is still pending: wait again, lair_cancel it, or free
 * it. */
int lair_wait(struct lair_call *call, double timeout);

/* -EINPROGRESS while the call is pending; 0 if it was answered; else the LAIR_E_* with which it failed. If a cell
 * raises an exception, its call does not fail. */
int lair_outcome(const struct lair_call *call);

/* The sentence for a failed outcome; "" otherwise. Valid as long as the call. */
const char *lair_call_error(const struct lair_call *call);
/* As lair_error_setting. Valid as long as the call. */
const char *lair_call_setting(const struct lair_call *call);

/* How much output of a watched cell has come. Output that is not kept any more is skipped, so a piece may begin
 * later than the piece before it ended. Inside a callback: the end of the callback's piece. */
struct lair_point lair_point(const struct lair_call *call);

/* Run @on_done once, when the call has an outcome. Unlike the other callbacks it may free this one call, if nobody
 * waits for it. Set it right after starting the call. */
void lair_on_done(struct lair_call *call, void (*on_done)(struct lair_call *call, void *userdata), void *userdata);

/* Forget the call. A later answer is dropped, but the request is still carried out. If its cell calls functions of
 * this program, it gets a tools.FunctionError. NULL is fine. Returns NULL. */
struct lair_call *lair_call_free(struct lair_call *call);

/* ---- answers: valid as long as their call; NULL if the call was another kind of request or has no answer ---- */

/* A list. Start with a cursor of 0; false at the end. A malformed item ends the list. */
struct lair_items {
	const char *data;
	size_t size;
};

/* A variable that was not saved, or not loaded. */
struct lair_refused {
	struct lair_text name, reason;
};

struct lair_blocked {
	struct lair_text event, target, reason;
};

/* One form of a value. A list of them is a bundle, which lair_next_data walks. */
struct lair_data {
	struct lair_text type; /* a MIME type */
	struct lair_text data; /* text, JSON or bytes */
	bool binary;
};

/* An output of a cell in several forms. */
struct lair_display {
	struct lair_items data;	   /* of lair_data */
	struct lair_text metadata; /* absent, or JSON */
	struct lair_text id;	   /* absent, or a name by which the display can be replaced */
	bool update;		   /* it replaces the display of that id, if there is one */
	bool clear;		   /* it replaces everything that was shown before */
};

struct lair_alive {
	double elapsed, cpu; /* seconds */
	uint64_t memory;     /* bytes; 0: not known */
	struct lair_text
		doing; /* absent, or the work that is done for the cell: the packages that are downloaded */
};

/* A file that was created or modified while the cell ran. */
struct lair_artifact {
	struct lair_text path, type,
		change; /* path: beneath the workspace, any bytes; change: created or modified */
	uint64_t size;
};

/* Something that a session did and that going back does not undo. */
struct lair_effect {
	struct lair_text act; /* connected, sent, wrote, made, renamed, removed, ran, called or maybe_called */
	struct lair_text target,
		to;    /* any bytes: an address, a path, a program or a call; to: of renamed, else absent */
	uint64_t cell; /* the cell that did it; between two cells: the cell before */
};

/* The effects since the state that is in force now, as far as Lair saw them. */
struct lair_effects {
	struct lair_items items; /* of struct lair_effect */
	uint64_t more;		 /* how many more there are */
};

/* A file of the workspace when the state went back. */
struct lair_file_back {
	struct lair_text path, change; /* path: any bytes; change: restored, made (it had been removed or renamed),
					  removed (it was not there), or failed */
};

/* The files that were restored with the state. */
struct lair_back {
	struct lair_items items; /* of struct lair_file_back */
	uint64_t more;		 /* how many more there are */
	struct lair_text stay;	 /* absent, or why they, or the first that failed, are not those of that state */
};

/* One line of a traceback. */
struct lair_error_frame {
	uint64_t cell;	       /* the number of the cell; 0: the line is in @file */
	struct lair_text file; /* absent: the line is in a cell */
	uint64_t line, column; /* line 0: not known */
	struct lair_text function, source;
	struct lair_items values; /* of lair_data: the type is the name of a variable */
};

struct lair_saved {
	struct lair_items names, refused; /* of text; of struct lair_refused */
	uint64_t size;			  /* in bytes */
};

/* The variables that were loaded from a saved state. */
struct lair_loaded {
	double age;			  /* of the saved state, in seconds; 0: nothing was loaded */
	struct lair_items names, refused; /* of text; of struct lair_refused */
	struct lair_text damaged;	  /* why none were: the damage of the saved state, and its fate */
};

/* How the last session of this id has ended. */
struct lair_ended {
	struct lair_text why; /* absent: there was no such session, or nothing is known of it. A cause as in a
				 result; or stopped or lost, if laird was; or unknown */
	double when;	      /* seconds since the epoch; 0: not known */
	uint64_t birth, cells;
	bool saved;		    /* its variables were saved, and are loaded */
	struct lair_text not_saved; /* absent, or why its variables were not saved, though they should have been */
	bool by_root;		    /* root has shut it down, not its user */
};

/* The code that ran can choose all numbers in it: do not trust them. */
struct lair_result {
	struct lair_text session; /* absent for a one-shot */
	uint64_t cell;
	int returncode;
	struct lair_text state;	   /* kept, new, rolled_back, reset or ended */
	struct lair_text cause;	   /* absent if the cell simply ended */
	struct lair_text out, err; /* empty if they were streamed */
	uint64_t out_dropped, err_dropped;
	uint64_t out_stray, err_stray; /* bytes at their beginning from before the cell began, even if streamed */
	struct lair_text text;	       /* absent, or the last expression as a prompt prints it */
	struct lair_items data;	       /* of lair_data: its other forms */
	struct lair_items displays;
	uint64_t displays_dropped;
	struct lair_text error_name, error_value, error_traceback; /* absent without an exception */
	struct lair_text error_suggestion; /* absent, or the name that may have been meant */
	uint64_t error_line, error_offset; /* of a syntax error, from 1; else 0 */
	struct lair_text error_context;	   /* absent, or the line of a syntax error */
	struct lair_items error_frames;	   /* outermost first */
	struct lair_items blocked;
	struct lair_items artifacts;
	bool artifacts_more; /* there are more */
	double duration_ms;
	double limit; /* if the cause is timeout: how many seconds the cell had; else 0 */
	struct lair_text
		setting;   /* as lair_error_setting: the setting that decided its end, or another note; or absent */
	uint64_t restored; /* if rolled_back: the cell whose state is in force now, 0: before the first */
	struct lair_effects effects;   /* if rolled_back or reset */
	struct lair_back back;	       /* likewise */
	struct lair_text files_unkept; /* absent, or the first file that cannot be restored later, and why */
	struct lair_text unfaithful;   /* absent, or why there is no checkpoint of the state after this cell */
	uint64_t forgotten;	       /* how many checkpoints were forgotten since the last answer */
	struct lair_loaded loaded;     /* if the session was opened for this cell */
	struct lair_ended ended;       /* if the session is new: how the one before ended */
	uint64_t birth;		       /* of the session: no other session of this id has the same number */
	struct lair_text language;     /* absent: Python */
};

struct lair_session {
	struct lair_text session, profile, state, workspace,
		level; /* session: root gets UID/ID if it is another user's */
	struct lair_text language, version,
		python; /* its name and version; the version if it is Python, else absent */
	uint64_t uid, cells, queued, pid, memory;
	double created, idle, idle_left, hard_left;
	struct lair_items guards;		 /* of text */
	bool opened;				 /* by this request */
	uint64_t checkpoints, checkpoint_memory; /* how many are kept, and the bytes that they alone hold */
	double checkpoint_age;			 /* seconds since the oldest was made */
	double cpu;				 /* seconds that its processes have used */
	uint64_t disk, files, tasks;		 /* bytes and files in its workspace; processes and threads now */
	uint64_t memory_limit, tasks_limit, disk_limit;	    /* 0: none */
	double cpu_limit, cell_timeout, idle_ttl, hard_ttl; /* processors; seconds; 0: none */
	struct lair_loaded loaded;			    /* if this request opened it */
	struct lair_effects effects; /* of a branch: its parent's, since the state in which the branch began */
	struct lair_ended ended;     /* how the last session of this id ended, if no cell has told that yet */
	uint64_t birth;		     /* no other session of that id has the same number */
	bool own_files;		     /* of a branch that was made: it has files of its own */
	struct lair_text key;	     /* of a branch at a call: of its cell, see lair_attach */
	struct lair_text
		directory; /* where it starts, a directory of the daemon's host; absent: in its workspace */
	bool writable;	   /* its cells may write to that */
};

/* Output that was written between two cells. Of much output only the beginning and the end are kept. */
struct lair_stray {
	struct lair_text out, err;
	uint64_t at; /* bytes in all earlier answers; if you have had fewer, others had the rest, or it is lost */
};

/* The present state of a session. */
struct lair_state {
	uint64_t cell;		     /* this is the state after this cell; 0: before the first */
	struct lair_text name;	     /* absent: it has no name */
	struct lair_effects effects; /* of restore and undo */
	struct lair_back back;	     /* likewise */
};

struct lair_checkpoint {
	struct lair_text name; /* absent: it has no name */
	uint64_t cell, memory; /* the state after this cell; the bytes that it alone holds */
	double age;	       /* seconds */
	uint64_t files;	       /* how many there were; 0: they are not kept, or not counted yet */
	uint64_t files_size;   /* bytes that are kept of them, and not for the state before */
	bool files_lack;       /* some of them are not kept */
	uint64_t parent;       /* which of the list it grew from, from 1 on; 0: the beginning */
	bool gap;	       /* a state between the two is forgotten */
	bool base;	       /* the present state is this one, or grew from it */
};

/* How two states of a session differ. */
struct lair_difference {
	uint64_t since, until;	     /* the cells after which the states are; 0: before the first */
	struct lair_items files;     /* of struct lair_file_difference */
	uint64_t files_more;	     /* how many more there are */
	struct lair_text files_lack; /* absent, or why they are not known */
	struct lair_items variables; /* of struct lair_variable_difference */
	uint64_t variables_more;
	struct lair_text variables_lack;
	struct lair_items unsure; /* of text: variables that may have changed where nobody can see it */
};

struct lair_file_difference {
	struct lair_text path;	       /* any bytes */
	struct lair_text change, kind; /* created, changed, deleted, renamed or mode; kind: as in lair_file */
	struct lair_text was;	       /* absent, or its path before */
	uint64_t size, size_before;
	uint64_t mode, mode_before; /* 0: they are the same */
};

struct lair_variable_difference {
	struct lair_text name, change; /* new, changed or gone */
	struct lair_text type, text;   /* as in lair_variable; of one that is gone, what it was */
	uint64_t size;
	struct lair_text type_before, text_before; /* absent unless it has changed */
	uint64_t size_before;
};

struct lair_piece {
	struct lair_text data; /* shorter than requested: the file ends */
	uint64_t size, file;   /* size: of the whole file; file: another number if the path has another file */
	unsigned mode;
};

struct lair_transfer {
	uint64_t transfer;     /* 0: the file is complete */
	uint64_t offset, size; /* how far it is; for copy_in, of how many bytes */
};

struct lair_listing {
	struct lair_items files;
	uint64_t next; /* 0: there are no more */
};

struct lair_file {
	struct lair_text name, kind; /* kind: file, directory, link or other */
	uint64_t size, stored;	     /* stored: on the disk */
	unsigned mode;
	double modified; /* seconds since the epoch */
};

/* A cell that runs by itself. */
struct lair_detached {
	struct lair_text key;
	uint64_t cell; /* 0: the cell still waits */
};

struct lair_kept {
	struct lair_text key;	/* absent: it has none */
	uint64_t cell;		/* 0: the cell still waits */
	struct lair_text state; /* queued, running or finished */
	int returncode;
	double age;	/* seconds since it began to wait, began to run, or ended */
	uint64_t bytes; /* the size of its result */
};

/* A call that waits for its answer. */
struct lair_waiting {
	struct lair_text session, key; /* session: absent for a one-shot; key: of its exec */
	uint64_t cell, number;	       /* cell: 0 in on_held, unless it was attached to by number */
	struct lair_text function;
	struct lair_text arguments; /* msgpack, which lair_json shows; absent if they are large */
	uint64_t bytes;		    /* of the arguments */
	struct lair_text state;	    /* out: with its provider; asks: for approval; held: put aside */
	struct lair_text text;	    /* absent, or why it asks or is held */
	double age;		    /* seconds since the cell called */
	uint64_t uid;
};

struct lair_waiting_list {
	struct lair_items calls; /* of struct lair_waiting */
	uint64_t more;		 /* how many there are beside these */
};

struct lair_completions {
	struct lair_items matches;
	uint64_t start, end; /* the characters of the code that a match replaces */
};

struct lair_match {
	struct lair_text text, type; /* type: function, class, module, ...; may be absent */
};

struct lair_inspection {
	bool found;				/* false: nothing has that name, and the other fields are absent */
	struct lair_text name, type, signature; /* an absent field does not exist, or is not known */
	struct lair_text docstring, text, file, source; /* text: a short repr */
	uint64_t line;					/* in file; 0: not known */
};

struct lair_variables {
	struct lair_items variables; /* by name, at most a thousand */
	uint64_t total;
	struct lair_text directory; /* where the session works; absent if that directory is removed */
};

struct lair_variable {
	struct lair_text name, type, text; /* text: a short repr */
	struct lair_items shape;	   /* of numbers: the length of each dimension; absent if it has none */
	uint64_t size;			   /* bytes */
};

struct lair_checked {
	bool valid;
	struct lair_text error;		/* if it is not valid: the reason, */
	uint64_t line, offset;		/* the place, from 1; 0: not known, */
	struct lair_text context, rule; /* that line, and the rule of the profile if it breaks one */
};

struct lair_completeness {
	struct lair_text status, indent; /* status: complete, incomplete, invalid or unknown */
};

/* A cell that has run. */
struct lair_past {
	uint64_t cell, size;	      /* size: of the code in bytes, even if not all of it is kept */
	struct lair_text code, cause; /* cause: as in a result */
	int returncode;
	double duration_ms;
	bool undone; /* the present state does not include it */
};

struct lair_daemon {
	uint64_t version, pid, frame_max;
	struct lair_text server,
		instance; /* instance: while it is the same, the daemon remembers the requests that it got */
};

/* A saved state. */
struct lair_save {
	struct lair_text session;
	uint64_t uid, size, count;	  /* size: bytes; count: of names */
	double created, expires;	  /* seconds since the epoch; expires: 0: never */
	struct lair_items names, refused; /* of text; of struct lair_refused: only with a session in lair_saves */
	double before;			  /* when the one before it was saved; 0: there is none */
	/* How many of that session are damaged, and kept aside. If session is empty, it is this one: its session
	 * cannot be read. */
	uint64_t damaged;
};

/* The sessions that were saved when the daemon stopped. */
struct lair_stopped {
	uint64_t saved;		   /* sessions */
	struct lair_items refused; /* of struct lair_refused: sessions that were not saved, and why */
};

/* The settings that the daemon has read again. */
struct lair_reloaded {
	struct lair_text path;	   /* of the file; absent: the settings inside laird */
	struct lair_items changes; /* of struct lair_change */
};

struct lair_change {
	struct lair_text change;	/* changed: a setting; added or removed: a profile */
	struct lair_text profile;	/* absent: the setting is the daemon's */
	struct lair_text setting;	/* absent: it is about the whole profile */
	struct lair_text before, after; /* the values, as sessions.conf has them */
	bool restart;			/* it takes effect when laird is started anew */
};

/* A set of packages. */
struct lair_package_set {
	struct lair_text set;	    /* its name */
	uint64_t size;		    /* bytes; 0: not known */
	double made;		    /* seconds since the epoch */
	bool used;		    /* by a session, a state of one, or a template */
	struct lair_items projects; /* of text: NAME==VERSION */
	uint64_t template_memory;   /* bytes that its templates take; 0: it has none */
	struct lair_items sessions; /* of text: yours that have it, now or in a state they can go back to */
};

struct lair_package_sets {
	struct lair_text path;	/* where they are */
	struct lair_items sets; /* of struct lair_package_set */
	uint64_t more;		/* how many there are beside these */
	uint64_t taken, cache;	/* bytes that all sets take, and that uv keeps beside them; 0: not for you */
	uint64_t total;		/* how many bytes both may take together; 0: any */
};

struct lair_counters {
	double uptime;
	uint64_t pid, keeper_pid, sessions, spares, templates, opened, ended, cells, requests, refused, memory;
	struct lair_items profiles; /* of text */
	uint64_t saving;	    /* while the daemon stops: how many sessions are still to be saved */
	uint64_t timed_out, out_of_memory, crashed; /* cells that were stopped at their timeout, had too much
						     * memory, or ended their interpreter */
	uint64_t rolled_back;	     /* how often a session went back because its interpreter was lost */
	uint64_t audit_missed;	     /* lines that the audit log does not have */
	struct lair_items loading;   /* of text: profiles that still import what they preload */
	struct lair_items languages; /* of text: of the profiles, in their order */
	struct lair_items times;     /* of struct lair_times, shortest first: cells since laird was started */
	double ran, waited;	     /* the sums of their times */
};

/* How many cells took so long, and longer than the one before it says. */
struct lair_times {
	double most;	      /* seconds; 0: all that took longer */
	uint64_t ran, waited; /* from their beginning to their answer, and from their request to their beginning */
};

const struct lair_daemon *lair_daemon(const struct lair_call *call);		 /* hello */
const struct lair_session *lair_session(const struct lair_call *call);		 /* open, info, branch */
const struct lair_result *lair_result(const struct lair_call *call);		 /* exec, attach */
const struct lair_detached *lair_detached(const struct lair_call *call);	 /* exec with detach */
struct lair_items lair_result_list(const struct lair_call *call);		 /* results */
const struct lair_counters *lair_counters(const struct lair_call *call);	 /* stats */
const struct lair_package_sets *lair_package_sets(const struct lair_call *call); /* packages */
bool lair_interrupted(const struct lair_call *call);				 /* interrupt, cancel, kill */
const struct lair_saved *lair_saved(const struct lair_call *call);		 /* save */
const struct lair_loaded *lair_loaded(const struct lair_call *call);		 /* load, */
const struct lair_ended *lair_load_ended(const struct lair_call *call);	 /* which may have opened the session */
struct lair_items lair_save_list(const struct lair_call *call);		 /* saves */
const struct lair_stopped *lair_stopped(const struct lair_call *call);	 /* stop */
const struct lair_reloaded *lair_reloaded(const struct lair_call *call); /* reload */
struct lair_items lair_sessions(const struct lair_call *call);		 /* list */
const struct lair_difference *lair_difference(const struct lair_call *call);
const struct lair_state *lair_state(const struct lair_call *call);	     /* checkpoint, restore, undo */
const struct lair_effects *lair_reset_effects(const struct lair_call *call); /* reset */
struct lair_items lair_checkpoint_list(const struct lair_call *call);	     /* checkpoints, oldest first */

const struct lair_piece *lair_piece(const struct lair_call *call);	 /* get */
const struct lair_transfer *lair_transfer(const struct lair_call *call); /* put, copy_in */
const struct lair_listing *lair_listing(const struct lair_call *call);	 /* files */

const struct lair_completions *lair_completions(const struct lair_call *call);	 /* complete */
const struct lair_inspection *lair_inspection(const struct lair_call *call);	 /* inspect */
const struct lair_variables *lair_variables(const struct lair_call *call);	 /* vars */
const struct lair_checked *lair_checked(const struct lair_call *call);		 /* check */
const struct lair_completeness *lair_completeness(const struct lair_call *call); /* is_complete */
const struct lair_stray *lair_stray_output(const struct lair_call *call);	 /* stray */
struct lair_items lair_past_cells(const struct lair_call *call);		 /* history, oldest first */
uint64_t lair_calls_turn(const struct lair_call *call); /* watch_calls; 0: it has no answer */
const struct lair_waiting_list *lair_waiting_list(const struct lair_call *call); /* calls, oldest first */

bool lair_next_text(struct lair_items items, size_t *cursor, struct lair_text *item);
bool lair_next_refused(struct lair_items items, size_t *cursor, struct lair_refused *item);
bool lair_next_blocked(struct lair_items items, size_t *cursor, struct lair_blocked *item);
bool lair_next_data(struct lair_items bundle, size_t *cursor, struct lair_data *item);
bool lair_next_display(struct lair_items items, size_t *cursor, struct lair_display *item);
bool lair_next_artifact(struct lair_items items, size_t *cursor, struct lair_artifact *item);
bool lair_next_file_back(struct lair_items items, size_t *cursor, struct lair_file_back *item);
bool lair_next_effect(struct lair_items items, size_t *cursor, struct lair_effect *item);
bool lair_next_error_frame(struct lair_items items, size_t *cursor, struct lair_error_frame *item);
bool lair_next_kept(struct lair_items items, size_t *cursor, struct lair_kept *item);
bool lair_next_save(struct lair_items items, size_t *cursor, struct lair_save *item);
bool lair_next_package_set(struct lair_items items, size_t *cursor, struct lair_package_set *item);
bool lair_next_session(struct lair_items items, size_t *cursor, struct lair_session *item);
bool lair_next_file(struct lair_items items, size_t *cursor, struct lair_file *item);
bool lair_next_file_difference(struct lair_items items, size_t *cursor, struct lair_file_difference *item);
bool lair_next_variable_difference(struct lair_items items, size_t *cursor, struct lair_variable_difference *item);
bool lair_next_checkpoint(struct lair_items items, size_t *cursor, struct lair_checkpoint *item);
bool lair_next_match(struct lair_items items, size_t *cursor, struct lair_match *item);
bool lair_next_variable(struct lair_items items, size_t *cursor, struct lair_variable *item);
bool lair_next_past(struct lair_items items, size_t *cursor, struct lair_past *item);
bool lair_next_waiting(struct lair_items items, size_t *cursor, struct lair_waiting *item);
bool lair_next_times(struct lair_items items, size_t *cursor, struct lair_times *item);
bool lair_next_change(struct lair_items items, size_t *cursor, struct lair_change *item);
bool lair_next_number(struct lair_items items, size_t *cursor, uint64_t *item);

#ifdef __cplusplus
}
#endif
#endif
