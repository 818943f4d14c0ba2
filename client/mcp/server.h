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
	char session[24];  /* for calls that name none, if the options name none either */
	json_t *births;	   /* by id: the births of the sessions that the last calls have used */
	struct lair *lair; /* NULL: no request has needed it yet */
	int signals;	   /* owned; -1: signals do what they usually do */
	struct lines input;
	struct outbox outbox;
	struct request *requests; /* newest first */
	unsigned n_requests;
	unsigned legacy; /* the old version that the handshake has agreed on */
	bool elicits;	 /* the client of the handshake can ask its person */
	/* functions of cells */
	struct offered *offered;
	json_t *asked; /* questions to the client: by their ids, which call they are of */
	uint64_t last_asked;
	/* how it ends */
	double ending_since; /* when the input ended; 0: it has not */
	bool interrupted;    /* since then, the cells that ran were interrupted */
	bool given_up, mute;
	/* for another transport: conversation.h */
	bool lent; /* @lair is somebody else's, who also processes it */
	void (*send)(struct server *server, json_t *document, const json_t *about);
	int error; /* why the server must end */
};

/* What a request does next, once the daemon has answered its call. */
typedef void step(struct request *request, struct lair_call *call);

struct request {
	struct server *server;
	struct request *previous, *next;
	json_t *id, *token; /* token: NULL if no progress is wanted */
	bool modern;	    /* of the stateless era */
	bool cancelled;	    /* nobody waits for the answer, but its cell must still end */
	bool answered;	    /* the client has its answer, but the calls of its cell still want theirs */
	bool elicits;	    /* its client can ask its person */
	json_t *state,
		*responses; /* of a request that goes on: what it was answered, and what the person has said */

	const struct tool *tool; /* of tools/call: the tool, */
	json_t *arguments;	 /* and its checked arguments; of other methods: the params */

	struct lair_call *call; /* the call that it waits for; NULL: none */
	step *then;
	bool tolerant; /* it is for @then to see what went wrong */
	bool runs;     /* that is a cell: to cancel it is to interrupt it */
	json_t *news;  /* what its result says of the session, whatever else comes of it; owned, or NULL */
	double due;    /* when on_due is to be run, in clock_seconds(); 0: never */
	void (*on_due)(struct request *request);
	void (*resume)(struct request *request);	    /* it waits for servers; this comes then */
	const char *key;				    /* of its cell, in @work; NULL: none */
	json_t *asking;					    /* calls of its cell that ask; owned, or NULL */
	void (*hurry)(struct request *request, double due); /* answer until then */
	void *work;					    /* shared by the steps, freed with work_free */
	void (*work_free)(void *work);
};

/* ---- ends ---- */

/* @result is taken over. The fields of every result of the era are added. */
void request_reply(struct request *request, json_t *result);
/* The same, but the request goes on: nobody waits for it any more. */
void request_answer(struct request *request, json_t *result);
/* An error of the protocol. @data is taken over, and may be NULL. */
void request_refuse(struct request *request, int code, const char *message, json_t *data);
/* The daemon has refused, or cannot be asked. A tool gets a result that says so to the model, anything else an
 * error. */
void request_fail(struct request *request, int error, const char *sentence);
/* Ends without an answer. */
void request_drop(struct request *request);

/* ---- the daemon ---- */

/* The connected handle. If there is no daemon and @start is true, one is started. Returns 0, or an error as
 * lair_connect with *sentencep. */
int server_connect(struct server *server, struct lair **lairp, bool start, const char **sentencep);
/* The same for a request. If there is no daemon, the request ends: this returns NULL, and @request is gone. */
struct lair *request_lair(struct request *request);
/* Go on with @then once *callp, which was started with the result @started, is answered. If it fails, the request
 * ends with request_fail. */
void request_wait(struct request *request, int started, struct lair_call **callp, step *then);

/* ---- messages ---- */

/* @document is taken over. */
void server_send(struct server *server, json_t *document);
/* The same for a notification or a question that belongs to @request. */
void request_tell(const struct request *request, json_t *document);
/* One line of input. */
void server_line(struct server *server, struct lair_text line);
/* If it cannot, server->error says why. */
void server_init(struct server *server, const struct mcp_options *options, int in, int out);
void server_deinit(struct server *server);

/* A new request, in the list of unanswered ones. NULL without memory. */
struct request *request_new(struct server *server, json_t *id);
/* The client does not wait for the answer any more. */
void request_cancel(struct request *request);
