/* A session: a client names it by an id. It owns a queue of cells, three deadlines, a history of checkpoints,
 * and one live interpreter in a warden that it may share with its branches. What it does is decided by one table
 * of states and events, which lies above: life/table.c. */
#pragma once

#include "base/graveyard.h"
#include "effects.h"
#include "history.h"
#include "journal.h"
#include "name.h"
#include "operation.h"
#include "past.h"
#include "promise/cell.h"
#include "proto/event.h"
#include "warden/transcript.h"
#include "warden/warden.h"

enum session_state {
	SESSION_STARTING, /* its warden is not ready */
	SESSION_IDLE,
	SESSION_BUSY,	   /* a cell runs */
	SESSION_GRACE,	   /* its time is up; it has been interrupted and may still end by itself */
	SESSION_ANSWERING, /* between two cells: a question about the state */
	SESSION_UNSAVED,   /* between two cells: a checkpoint is due as soon as the answer has had time to arrive */
	SESSION_FREEZING,  /* between two cells: a checkpoint is being taken */
	SESSION_KILLING,   /* its interpreter is being killed, another one follows */
	SESSION_SWEEPING,  /* its interpreter is dead, what that left behind is being killed */
	SESSION_RESTORING, /* a frozen interpreter is being forked */
	SESSION_CLOSING,   /* nothing follows */
	_SESSION_STATE_N,
};

enum filing_state {
	FILING_QUIET,
	FILING_KEEPS,  /* no cell begins meanwhile */
	FILING_BRINGS, /* nothing of the session runs meanwhile */
	FILING_LEAVES, /* the same, and its warden has been told to give up */
	_FILING_STATE_N,
};

/* What comes of its files when it goes back: filing.h. Numbers are those of its warden; 0: there are none. */
struct filing {
	uint64_t now;	  /* as they were when they were kept last */
	uint64_t n, size; /* how many these are, and the bytes that were kept for them */
	uint64_t first;	  /* at its beginning */
	uint64_t base;	  /* those that belong to the base of its history */
	uint64_t origin;  /* of a branch that gets a copy: those of the state it grows from */
	enum filing_state state;
	uint64_t asked;		/* what its warden is keeping, or bringing back */
	bool lack;		/* some of those of `now` are not kept */
	bool stale;		/* they have changed since they were kept */
	bool put;		/* the same, and a client was told that it has put one there */
	bool aside;		/* they are not those of the state, which was gone back to without them */
	bool restless;		/* for all it says, others may change them between two cells */
	msgpack_sbuffer mapped; /* array of inodes: they may change without notice */
	msgpack_sbuffer back;	/* array of file_back: to be told, and how many more */
	uint64_t more;
	char stay[256], unkept[160]; /* to be told; "": nothing */
};

/* A branch in the middle of the running cell, while it is being made: split.h. */
struct split {
	struct operation *operation; /* the request for it; NULL: nobody wants it any more */
	struct interpreter *copy;    /* being made; NULL: none is */
	/* What the interpreter has been answered since it was asked for the copy, which does not know of that:
	 * bodies of `returned`. */
	msgpack_sbuffer answers;
	struct timer due;
};

/* What the last checkpoint has cost the cell after it, which had to copy what it wrote to. If that was much, the
 * next one is made only when a multiple of that time is over. */
struct costliness {
	uint64_t bytes, us; /* copied, and in how long */
	uint64_t until;	    /* event_now(); in the past: now */
};

/* What it is opened with: the code of its first cell, and packages for that, an array of str; both may be absent.
 */
struct beginning {
	struct bytes code, packages;
	struct profile *profile; /* one that differs from that of its template; NULL: the same */
};

struct session {
	struct list node;     /* among all, oldest first */
	struct list mate;     /* among its user's, likewise */
	struct tenant tenant; /* in its warden */
	struct grave grave;
	char id[SESSION_ID_MAX + 1]; /* "" for a one-shot */
	uid_t owner;
	struct user *user;	      /* who pays: the owner */
	char name[SESSION_NAME_SIZE]; /* what laird's own user calls it: for the log */
	struct sessions *sessions;
	struct profile *profile;
	enum session_state state;
	struct warden *warden;
	struct interpreter *live;

	char *workspace; /* of a branch with files, and of branches of that one; NULL: the warden's */

	struct list queue; /* of cells that wait */
	size_t n_queued;
	struct cell *cell;	/* the one that runs, or whose reply waits for a restore */
	uint64_t n_cells;	/* started so far */
	uint64_t birth;		/* tells it from others of its id, see past.h */
	bool untold;		/* no cell has been told yet that one of its id was before */
	struct list transfers;	/* files on their way in, see transfer.h */
	struct output stray[2]; /* written between cells; the next one gets it */
	uint64_t stray_given;	/* how many bytes of it were answers to `stray` */
	struct transcript transcripts[2];
	bool transcripts_stored;
	msgpack_sbuffer words[2]; /* of what no reply holds yet, that which is in no transcript */
	bool exited;		  /* the interpreter is dead; its last words are being read */
	const char *kill_cause;	  /* why KILLING or CLOSING */
	char kill_text[32];	  /* holds it if a former router said so */
	struct verdict verdict;	  /* of the cell whose reply waits */
	char verdict_cause[32];	  /* holds "signal NN" */
	char lost_cause[32];	  /* state was lost between two cells: the next reply says so */
	uint64_t lost_to;	  /* the state after which cell took its place */
	bool lost_step;		  /* that was a step back, because it had not been kept */

	struct history history;
	struct kept_list journal;
	struct effects effects;
	struct past_calls done_calls; /* of the live state */
	uint64_t at;		      /* the live state is the one after this cell, if no cell has run since */
	bool growing;		      /* out of another session's checkpoint */
	bool midway;		      /* it begins in the middle of a cell, and does not yet: see split.h */
	bool was_saved;		      /* the running cell began in a saved state */
	bool exact;		      /* the same, and it can be gone back to */
	struct interpreter *source;   /* frozen: what RESTORING forks, or what a branch grew from that has no other.
				       * It lasts as long as somebody has it here */
	struct checkpoint *target;    /* what to restore; NULL: the pristine image */
	struct interpreter *successor;	 /* made while the live one is being killed; NULL: when it is dead */
	struct checkpoint *successor_of; /* out of which; NULL: the pristine image */
	struct interpreter *freezing;	 /* the copy being made; the running cell, if any, waits behind it */
	struct split split;
	struct comparison *comparison; /* of a diff under way; NULL before the first */
	struct costliness costly;
	bool hurried;		     /* the last cell came soon after the answer to the one before */
	struct list operations;	     /* on checkpoints, and questions, waiting for an idle moment */
	struct operation *operation; /* the one under way */
	uint64_t n_questions;
	uint64_t n_forgotten;  /* checkpoints since the last reply */
	uint64_t scarce_until; /* so long is waited for a process to go back with; 0: none has failed */
	unsigned idle_deaths;  /* of interpreters made from one state, since a cell ended */

	/* What comes of its files when it goes back: filing.h. Numbers are those of its warden; 0: there are none.
	 */
	struct filing filing;

	const char *expiring; /* its time is over, for this reason: it is saved, then ended */
	bool save_tried;
	struct cell *last_save; /* the cell that does it, until it is answered */
	bool task_file_due;	/* the file of the last task need not outlive the router any more */
	bool restored;		/* it has all of a saved state, and has not been saved since */
	bool unloaded; /* it has nothing of a saved state that was to be loaded, which no save of ours replaces */
	struct load_report load_report;
	char not_saved[PAST_SENTENCE_SIZE]; /* why its last save has failed; "": it has not */

	uint64_t opened, last; /* event_now() at birth, and at the end of the last cell */
	double created;	       /* seconds since the epoch */
	struct timer deadline, idle, hard, measure, alive, trim, call_due;
	uint64_t patience;	     /* from when the deadline was set */
	struct list resets, closers; /* requests that wait for it to be fresh, or gone */
};

/* A session without any past. NULL when out of memory. */
struct session *session_alloc(struct sessions *sessions, struct profile *profile, const char *id, uid_t owner);
struct session *session_free(struct session *session);

/* The transcripts of one that is new. Returns 0 or -errno. */
int session_create_transcripts(struct session *session);
/* Its promise, for the next router; 0: it has none. */
uint64_t promise_serial(const struct address *request);
/* The request whose promise a former router has left; 0: it had none. */
struct address session_claim(const struct session *session, uint64_t promise);

/* Put a cell in the queue; the session owns it now. The caller has checked the limit. A session that has ended
 * refuses it. */
void session_exec(struct session *session, struct cell *cell);
/* Somebody is there: it has not been idle. */
void session_stay(struct session *session);

/* How the session that had its id before has ended, if there was one and no cell has told of it: see past.h.
 * Returns 0 or -ENOMEM. */
int session_put_ended(const struct session *session, msgpack_sbuffer *buffer);

/* That of a warden's tenant. */
struct session *session_of_tenant(const struct tenant *tenant);
struct event_loop *session_loop(const struct session *session);
bool session_busy(const struct session *session);
const char *session_workspace(const struct session *session);
/* The same as file_directory opens it. */
int session_directory(int *fdp, const struct session *session);
const char *session_state_name(const struct session *session);

/* What info and open tell @asker of it: info.c. The record points into @name. */
struct session_info session_record(const struct session *session, uid_t asker, char name[static SESSION_NAME_SIZE]);
/* Answer an `open`: @made: by making it, and with what was loaded. */
void session_tell_opened(const struct session *session, const struct address *request, bool made);

/* ---- output.c ---- */

/* From a pipe, and in the session's transcript. */
void session_on_output(struct session *session, enum interpreter_stream stream, struct bytes data);
/* What was written between cells has been told: no cell gets it. */
void session_drop_stray(struct session *session);
/* What gets the output of now: the cell, or what no cell has written. A task is no cell that anybody reads. */
struct output *session_output(struct session *session, enum interpreter_stream stream);
/* Give back the memory of what the next router would not keep of the stream either. */
void session_trim_transcripts(struct session *session);
/* From elsewhere: of the dead, or of ourselves. */
void session_on_words(struct session *session, enum interpreter_stream stream, struct bytes data);
