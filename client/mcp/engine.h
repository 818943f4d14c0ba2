/* The server, between a transport and the daemon: messages in, documents out. It has the unanswered requests.
 * Exactly one of request_reply, request_refuse, request_fail and request_drop ends a request, which is freed then.
 */
#pragma once

#include "mcp.h"

#include "base/jsonrpc.h"

#include "proto/clock.h"

struct request;
struct tool;

/* A message to the client, which is taken over. It may come inside engine_take. @about: the id of the client's
 * request that it answers or belongs to; borrowed, may be NULL. */
typedef void engine_say(void *userdata, json_t *document, const json_t *about);

struct engine {
	struct mcp_options options;
	char session[24]; /* for calls that name none, if the options name none either */
	engine_say *say;
	void *userdata;
	size_t waiting;	   /* bytes that the transport has not got rid of; it says so */
	json_t *births;	   /* by id: the births of the sessions that the last calls have used */
	struct lair *lair; /* NULL: no request has needed it yet */
	struct event_source on_lair;
	bool lent;		  /* @lair is the transport's, which also processes it */
	bool mute;		  /* nobody listens any more */
	struct request *requests; /* newest first */
	unsigned n_requests;
	unsigned legacy; /* the old version that the handshake has agreed on */
	bool elicits;	 /* the client of the handshake can ask its person */
	/* functions of cells */
	struct offered *offered;
	struct rpc_asker asker; /* questions to the client */
	int error;		/* why the server must end */
};

/* The strings of @options and @session are borrowed, and so is @lair, which is connected; NULL: the engine connects
 * by itself. NULL without memory. */
struct engine *engine_new(const struct mcp_options *options, struct lair *lair, const char *session,
			  engine_say *say, void *userdata);
/* Its cells are interrupted. Not inside a callback of liblair. Returns NULL. */
struct engine *engine_free(struct engine *engine);
/* The client has sent a message. */
void engine_take(struct engine *engine, const struct rpc *rpc);
/* The same of a line that is not read yet. */
void engine_line(struct engine *engine, struct lair_text line);
/* No more requests will come: subscriptions end, and so does what waits for servers. */
void engine_end(struct engine *engine);
/* Nobody waits for the answers of cells any more. */
void engine_interrupt(struct engine *engine);

/* The next step of a request, once the daemon has answered its call. */
typedef void step(struct request *request, struct lair_call *call);

struct request {
	struct engine *engine;
	struct request *previous, *next;
	json_t *id, *token;	   /* token: NULL if no progress is wanted */
	bool modern;		   /* of the stateless era */
	bool cancelled;		   /* nobody waits for the answer, but its cell must still end */
	bool answered;		   /* the client has its answer, but the calls of its cell still want theirs */
	bool elicits;		   /* its client can ask its person */
	json_t *state, *responses; /* of a request that is resumed: our answer to it, and the person's answers */

	const struct tool *tool; /* of tools/call: the tool, */
	json_t *arguments;	 /* and its checked arguments; of other methods: the params */

	struct lair_call *call; /* the call that it waits for; NULL: none */
	step *then;
	bool tolerant;	    /* it is for @then to see what went wrong */
	bool runs;	    /* that is a cell: to cancel it is to interrupt it */
	json_t *news;	    /* facts about the session, which any result of it gets; owned, or NULL */
	struct timer timer; /* see request_due */
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
/* The same, but the request stays open, without a waiter. */
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
int engine_connect(struct engine *engine, struct lair **lairp, bool start, const char **sentencep);
/* The same for a request. If there is no daemon, the request ends: this returns NULL, and @request is gone. */
struct lair *request_lair(struct request *request);
/* Go on with @then once *callp, which was started with the result @started, is answered. If it fails, the request
 * ends with request_fail. */
void request_wait(struct request *request, int started, struct lair_call **callp, step *then);

/* Run on_due at @due, in clock_seconds(); 0: never. */
void request_due(struct request *request, double due);

/* ---- messages ---- */

/* @document is taken over. */
void engine_send(struct engine *engine, json_t *document);
/* The same for a notification or a question that belongs to @request. */
void request_tell(const struct request *request, json_t *document);

/* A new request, in the list of unanswered ones. NULL without memory. */
struct request *request_new(struct engine *engine, json_t *id);
/* The client does not wait for the answer any more. */
void request_cancel(struct request *request);
