/* The server: its unanswered requests, and the daemon that it asks. Exactly one of request_reply,
 * request_refuse, request_fail and request_drop ends a request, which is freed then. */
#pragma once

#include "mcp.h"

#include "jsonrpc.h"
#include "lines.h"
#include "outbox.h"

#include "proto/clock.h"

struct request;
struct tool;

struct server {
	const struct mcp_options *options;
	char session[24];  /* of calls that name none, if the options do neither */
	json_t *births;	   /* by id: which sessions the last calls have used */
	struct lair *lair; /* NULL: nobody needed it yet */
	int signals;	   /* owned; -1: they do what they do */
	struct lines input;
	struct outbox outbox;
	struct request *requests; /* newest first */
	unsigned n_requests;
	unsigned legacy; /* which of the old versions initialize has settled on */
	/* of its end */
	double ending_since; /* input has ended; 0: it has not */
	bool interrupted;    /* since then, what cells there were */
	bool given_up, mute;
	int error; /* why there is nothing more to be done */
};

/* What a request does next, when what it asked of the daemon is answered. */
typedef void step(struct request *request, struct lair_call *call);

struct request {
	struct server *server;
	struct request *previous, *next;
	json_t *id, *token; /* token: NULL unless progress is wanted */
	bool modern;	    /* of the stateless era */
	bool cancelled;	    /* nobody waits for the answer; only a cell is still to end */

	const struct tool *tool; /* of tools/call, */
	json_t *arguments;	 /* and its arguments, checked; of others, the params */

	struct lair_call *call; /* what it waits for; NULL: nothing of the daemon's */
	step *then;
	bool tolerant; /* it is for @then to see what went wrong */
	bool runs;     /* that is a cell: to cancel it is to interrupt it */
	json_t *news;  /* what its result says of the session, whatever else comes of it; owned, or NULL */
	double due;    /* when on_due is to be run, in clock_seconds(); 0: never */
	void (*on_due)(struct request *request);
	void *work; /* what the steps share, freed with */
	void (*work_free)(void *work);
};

/* ---- ends ---- */

/* @result is taken over; what every result of the era has is added. */
void request_reply(struct request *request, json_t *result);
/* An error of the protocol. @data: taken over, may be NULL. */
void request_refuse(struct request *request, int code, const char *message, json_t *data);
/* What the daemon said no to, or why it cannot be asked: a result that says so to a model, or else an error. */
void request_fail(struct request *request, int error, const char *sentence);
/* No answer. */
void request_drop(struct request *request);

/* ---- the daemon ---- */

/* The handle, connected; if @start, a daemon is started where none is. Returns 0, or an error as lair_connect with
 * *sentencep. */
int server_connect(struct server *server, struct lair **lairp, bool start, const char **sentencep);
/* The same for a request, which is ended if there is none: NULL then, and @request is gone. */
struct lair *request_lair(struct request *request);
/* Go on with @then once *callp, which was started with the result @started, is answered; if it is refused the
 * request ends with request_fail. */
void request_wait(struct request *request, int started, struct lair_call **callp, step *then);

/* ---- messages ---- */

/* @document is taken over. */
void server_send(struct server *server, json_t *document);
/* One line of input. */
void server_line(struct server *server, struct lair_text line);
void server_init(struct server *server, const struct mcp_options *options, int in, int out);
void server_deinit(struct server *server);

/* A request in the list of those without an answer. NULL without memory. */
struct request *request_new(struct server *server, json_t *id);
/* The client does not wait for it any more. */
void request_cancel(struct request *request);
