/* A session: a client names it by an id. It owns a queue of cells, three deadlines, a history of checkpoints,
 * and one live interpreter in a warden that it may share with its branches. Everything it does is in one table
 * of states and events in table.c. */
#pragma once

#include "base/graveyard.h"
#include "effects.h"
#include "history.h"
#include "journal.h"
#include "name.h"
#include "operation.h"
#include "past.h"
#include "promise/cell.h"
#include "split.h"
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
	bool aside;		/* they are not those of the state, which was gone back to without them */
	bool restless;		/* for all it says, others may change them between two cells */
	msgpack_sbuffer mapped; /* array of inodes: they may change without notice */
	msgpack_sbuffer back;	/* array of file_back: to be told, and how many more */
	uint64_t more;
	char stay[256], unkept[160]; /* to be told; "": nothing */
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
	struct journal journal;
	struct effects effects;
	struct past_deeds deeds;    /* of the live state */
	uint64_t at;		    /* the live state is the one after this cell, if no cell has run since */
	bool growing;		    /* out of another session's checkpoint */
	bool midway;		    /* it begins in the middle of a cell, and does not yet: see split.h */
	bool was_saved;		    /* the running cell began in a saved state */
	bool exact;		    /* the same, and it can be gone back to */
	struct interpreter *source; /* frozen: what RESTORING forks, or what a branch grew from that has no other.
				     * It lasts as long as somebody has it here */
	struct checkpoint *target;  /* what to restore; NULL: the pristine image */
	struct interpreter *successor;	 /* made while the live one is being killed; NULL: when it is dead */
	struct checkpoint *successor_of; /* out of which; NULL: the pristine image */
	struct interpreter *freezing;	 /* the copy being made; the running cell, if any, waits behind it */
	struct split split;		 /* a branch in the middle of the running cell, being made */
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

/* Make one and find it a warden, which may be READY already: session_on_ready is the caller's to call. Returns 0 or
 * -errno; -EAGAIN as from nursery_claim. */
int session_new(struct session **sessionp, struct sessions *sessions, struct profile *profile, const char *id,
		uid_t owner, const struct beginning *with);
/* One that grows from @from, a checkpoint of @parent, in the same warden, for @operation, which it owns from now on
 * and answers when it stands or fails. Returns 0 or -ENOMEM. */
int session_new_branch(struct session **sessionp, struct session *parent, struct checkpoint *from,
		       struct operation *operation);
struct session *session_free(struct session *session);

/* Put a cell in the queue; the session owns it now. The caller has checked the limit. A session that has ended
 * refuses it. */
void session_exec(struct session *session, struct cell *cell);
/* @kill: its interpreter is killed, and the session goes on from its last checkpoint. Whether a cell was running.
 */
bool session_interrupt(struct session *session, bool kill);
/* The same for the one cell that @request sent, which may still be waiting. Whether there was one. */
bool session_cancel(struct session *session, const struct address *request, bool kill);
/* The request is answered when it is done. */
void session_reset(struct session *session, const struct address *request);
void session_close(struct session *session, const struct address *request);
/* Do something with checkpoints at the next idle moment; the session owns @operation now, and answers it. The
 * caller has checked that no cell runs or waits. */
void session_operate(struct session *session, struct operation *operation);
/* End it for a reason of our own. @cause: static text for the reply of a running cell. */
void session_end(struct session *session, const char *cause);
/* The running cell asks or calls, or does so no longer, or somebody has come or gone who answers it: its time
 * stands still, or goes on. */
void session_heed_clock(struct session *session);
/* Whether it stood still, for a while, since the last look at what the processes of the session do. */
bool session_stood(const struct session *session);
/* Such a look: they have used @cpu seconds of processors so far, and the last look was @since ago. A cell that
 * computes while its time stands still, in another thread, does so in its own time. */
void session_charge_work(struct session *session, double cpu, uint64_t since);
/* What a client answers to an `ask` of the running cell. */
void session_answer(struct session *session, const struct input_request *input);
/* The answer of a provider, @by, to a call of the running cell, without its number. The call is no more, and others
 * who have it are told so. False if the answer is too large, and the cell has been told that. */
bool session_return_call(struct session *session, struct call *call, const struct returned_message *answer,
			 const struct address *by);
/* The same from somebody else, @by: its provider is told that nobody waits for it. */
void session_answer_call(struct session *session, struct call *call, const struct returned_message *answer,
			 uid_t by);
/* A provider, @by, puts it aside: nobody else is to do it. */
void session_hold_call(struct session *session, struct call *call, struct bytes why, const struct address *by);
/* It asks, and may be done. */
void session_approve_call(struct session *session, struct call *call, uid_t by);
/* Its calls have changed, or who answers them. */
void session_heed_calls(struct session *session);

/* Its client reads again. */
void session_resume(struct session *session);

/* How the session that had its id before has ended, if there was one and no cell has told of it: see past.h.
 * Returns 0 or -ENOMEM. */
int session_put_ended(const struct session *session, msgpack_sbuffer *buffer);

/* Somebody is there: it has not been idle. */
void session_stay(struct session *session);

bool session_busy(const struct session *session);
const char *session_workspace(const struct session *session);
/* The same as file_directory opens it. */
int session_directory(int *fdp, const struct session *session);
const char *session_state_name(const struct session *session);

/* What info and open tell @asker of it: info.c. The record points into @name. */
struct session_info session_record(const struct session *session, uid_t asker, char name[static SESSION_NAME_SIZE]);

/* ---- for operation.c: what the states do on behalf of an operation ---- */

/* Take a checkpoint now (IDLE, UNSAVED). FROZEN or a failure comes back to operation_on_frozen. */
void session_freeze(struct session *session);
/* Put the question under way to the interpreter (IDLE). */
void session_ask(struct session *session);
/* Give up the live state for @target (IDLE). operation_on_restored is called when that stands. */
void session_rewind(struct session *session, struct checkpoint *target);
void session_forget(struct session *session, struct checkpoint *checkpoint);

/* ---- from its warden and its interpreters: messages.c ---- */

/* How its warden tells it. */
extern const struct tenant_ops session_tenant_ops;

void session_on_ready(struct session *session);
/* The one who is to follow it lives, with that number; 0: there is none. */
void session_on_successor(struct session *session, uint64_t pid);
/* The types of what it may say; NULL after the last. */
const char *session_message_type(size_t i);
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
/* It broke the protocol, or (@why NULL) closed its channel. */
void session_on_lost(struct session *session, struct interpreter *interpreter, const char *why);
