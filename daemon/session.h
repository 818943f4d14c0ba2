/* A session: what a client names by id. It owns a queue of cells, three deadlines and a warden. All it does is one
 * table of states and events in session.c. */
#pragma once

#include "cell.h"
#include "warden.h"

#define SESSION_ID_MAX 128

enum session_state {
	SESSION_STARTING, /* its warden is not ready */
	SESSION_IDLE,
	SESSION_BUSY,	 /* a cell runs */
	SESSION_GRACE,	 /* its time is up; it has been interrupted and may still end by itself */
	SESSION_KILLING, /* its interpreter is being killed, a fresh one follows */
	SESSION_CLOSING, /* its warden is being killed, nothing follows */
	_SESSION_STATE_N,
};

struct session {
	struct list node;	     /* in the router, oldest first */
	char id[SESSION_ID_MAX + 1]; /* "" for a one-shot */
	uid_t owner;
	struct router *router;
	struct profile *profile;
	enum session_state state;
	struct warden *warden;
	struct list queue; /* of cells that wait */
	size_t n_queued;
	struct cell *cell;     /* the one that runs */
	uint64_t n_cells;      /* started so far */
	uint64_t opened, last; /* event_now() at birth, and at the end of the last cell */
	double created;	       /* seconds since the epoch */
	struct timer deadline, idle, hard;
	const char *kill_cause;	     /* why KILLING or CLOSING */
	bool exited;		     /* the interpreter is dead; its last words are being read */
	char lost_cause[32];	     /* state was lost between two cells: the next reply says so */
	struct list resets, closers; /* requests that wait for it to be fresh, or gone */
	struct output stray[2];	     /* written between cells; the next one gets it */
};

/* Make one and find it a warden. Returns 0 or -errno; -EAGAIN as from nursery_claim. */
int session_new(struct session **sessionp, struct router *router, struct profile *profile, const char *id,
		uid_t owner);
struct session *session_free(struct session *session);

/* Put a cell in the queue; the session owns it now. The caller has checked the limit. */
void session_exec(struct session *session, struct cell *cell);
/* Whether a cell was running. */
bool session_interrupt(struct session *session);
/* The same for the one cell that @request sent, which may still be waiting. Whether there was one. */
bool session_cancel(struct session *session, const struct address *request);
/* The request is answered when it is done. */
void session_reset(struct session *session, const struct address *request);
void session_close(struct session *session, const struct address *request);
/* End it for a reason of our own. @cause: static text for the reply of a running cell. */
void session_end(struct session *session, const char *cause);
/* What a client answers to an `ask` of the running cell. */
void session_answer(struct session *session, const struct input_request *input);

/* Its client reads again. */
void session_resume(struct session *session);

bool session_busy(const struct session *session);
const char *session_state_name(const struct session *session);

/* ---- from its warden and its interpreter ---- */

void session_on_ready(struct session *session);
void session_on_signalled(struct session *session);
void session_on_exited(struct session *session, int status, bool oom);
void session_on_warden_failed(struct session *session);
void session_on_warden_gone(struct session *session);
void session_on_frame(struct session *session, struct bytes frame);
void session_on_output(struct session *session, enum interpreter_stream stream, struct bytes data);
/* Its channel has ended, as it does when it dies. */
void session_on_closed(struct session *session);
void session_on_lost(struct session *session, const char *why);
