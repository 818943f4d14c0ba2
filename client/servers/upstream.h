/* One server, as this room sees it, and the two ways to reach one. */
#pragma once

#include "servers.h"

#include "base/jsonrpc.h"

#include "lair.h"

#include <sys/types.h>

/* Of a message, in either direction that is read. */
#define MESSAGE_SIZE_MAX ((size_t)32 << 20)
#define TEXT_END_SIZE 1024

enum upstream_state {
	UPSTREAM_DOWN,	   /* not started, or ended */
	UPSTREAM_STARTING, /* versions are being agreed on */
	UPSTREAM_LISTING,  /* its tools are listed for the first time */
	UPSTREAM_READY,
};

enum exchange_kind { EXCHANGE_INITIALIZE, EXCHANGE_DISCOVER, EXCHANGE_LIST, EXCHANGE_CALL, EXCHANGE_LISTEN };

/* A request that the server has not answered. */
struct exchange {
	struct rpc_asked asked;
	enum exchange_kind kind;
	struct servers_call *call; /* of EXCHANGE_CALL */
};

struct servers_call {
	struct servers_call *next; /* while it waits for its server */
	struct upstream *upstream;
	char *tool;
	json_t *arguments;
	struct exchange *exchange; /* NULL: it was not sent yet */
	bool again;		   /* it was sent to a session that the server had forgotten */
	bool refused;		   /* there was no way to send it */
	servers_done *done;
	servers_progress *progress;
	void *userdata;
};

struct process;
struct http;

struct upstream {
	struct servers *servers;
	struct upstream *next;
	char *name, *alias;
	json_t *entry; /* what the file says of it; owned */
	enum upstream_state state;
	bool modern;		      /* it is of the stateless era */
	const char *version;	      /* that was agreed on; NULL: none yet */
	double due;		      /* when it must be ready at the latest; 0: it need not */
	double up_since;	      /* when it became ready */
	double retry_at;	      /* before then, it is not started again */
	unsigned failures;	      /* in a row */
	char *failure;		      /* why it is down, if it should not be; owned */
	bool told;		      /* the owner knows the failure, or how many are left out */
	json_t *functions;	      /* what it offers, kept while it is down; NULL: never listed */
	size_t size;		      /* of them, as JSON */
	size_t left_out;	      /* how many of them a cell is not offered: there are too many */
	json_t *listed;		      /* the pages so far of the list that is under way; or NULL */
	json_t *seen;		      /* cursors of that list; owned */
	bool list_again;	      /* the tools have changed while they were listed */
	struct rpc_asker asker;	      /* of exchanges */
	struct servers_call *waiting; /* in the order of calls */
	struct process *process;
	struct http *http;
};

struct servers {
	struct servers_options options;
	struct upstream *upstreams; /* in the order of the file */
	json_t *document;
	struct timer turn; /* armed while there is something to do: servers_touch */
	void (*on_turn)(void *userdata);
	void *turn_userdata;
	bool changed;		   /* the functions have, since the owner was told */
	struct process *processes; /* also those that were given up, until they end */
	struct http_loop *http;	   /* NULL: none was needed yet */
};

/* ---- config.c ---- */

/* Returns 0 or -errno with a sentence. */
int config_read(struct servers *servers, const char *path, char **whyp);
bool config_is_http(const char *url);
/* Whether @entry has @tool among those that need no approval. */
bool config_allows(const json_t *entry, const char *tool);
/* @text with its ${NAME}s replaced from the environment. Returns 0, -ENOMEM, or -ENOENT with the sentence in *whyp.
 */
int config_expand(char **outp, const char *text, char **whyp);

/* ---- alias.c ---- */

#define ALIAS_SIZE 60

/* @name as a part of the name of a function. */
void alias_make(char alias[static ALIAS_SIZE], const char *name, bool keywords);
/* Another one, if that is taken: _2, _3, ... */
void alias_next(char alias[static ALIAS_SIZE], unsigned n);

/* ---- tools.c ---- */

/* Adds what a page of tools/list says to upstream->listed. Returns 0 or a sentence. */
const char *tools_take(struct upstream *upstream, json_t *result);
size_t tools_size(const json_t *functions);
/* Until they have no more than @most: the longest lose their schemas first, then descriptions; then the last go. */
void tools_shorten(json_t *functions, size_t most);
/* The function of that name; borrowed, or NULL. */
json_t *tools_find(const struct upstream *upstream, const char *function);

/* ---- upstream.c ---- */

int upstream_new(struct upstream **upstreamp, struct servers *servers, const char *name, json_t *entry);
struct upstream *upstream_free(struct upstream *upstream);
/* Start it, unless it runs, or has failed a moment ago. */
void upstream_start(struct upstream *upstream);
/* A message has come. */
void upstream_message(struct upstream *upstream, struct lair_text line);
/* It has ended, or cannot be reached any more. @why is a sentence without a period. */
void upstream_lost(struct upstream *upstream, const char *why);
/* One request has failed on its way. @refused: by the server, which is there; else it may have been done. */
void upstream_unanswered(struct upstream *upstream, json_int_t id, const char *why, bool refused);
/* Its session has ended over there, but it can be started again: the request was not read. */
void upstream_forgotten(struct upstream *upstream, json_int_t id);
/* Its deadline has come. */
void upstream_late(struct upstream *upstream);
/* Send or refuse the calls that wait, if that is possible now. */
void upstream_settle(struct upstream *upstream);
/* When something is to be done for it, although nothing has come; 0: never. */
double upstream_due(const struct upstream *upstream);

/* ---- process.c: stdio ---- */

/* Returns 0 or -errno, with a sentence in *whyp if there is one. */
int process_start(struct upstream *upstream, char **whyp);
/* The end of its stderr, on one line. */
void process_said(const struct process *process, char text[static TEXT_END_SIZE]);
/* @document is taken over. Returns 0 or -errno. */
int process_send(struct process *process, json_t *document);
/* End it. It is freed when it has ended. */
void process_end(struct process *process);
/* Free those that have ended. */
void process_sweep(struct servers *servers);
/* Free all, which were told to end, whether they have ended or not. */
void process_abandon(struct servers *servers);

/* ---- http.c: streamable HTTP, if there is libcurl ---- */

/* Returns 0 or -errno, with a sentence in *whyp if there is one. */
int http_start(struct upstream *upstream, char **whyp);
/* @document is taken over; @id: of the request, 0 if it is none. Returns 0 or -errno. */
int http_send(struct http *http, json_t *document, json_int_t id);
/* The request has its answer. */
void http_answered(struct http *http, json_int_t id);
/* Nobody waits for its answer any more: its connection ends. */
void http_drop(struct http *http, json_int_t id);
/* The handshake is over: listen to what the server says unasked. */
void http_listen(struct http *http);
/* Its transfers end, and it is freed. */
void http_end(struct http *http);
double http_due(const struct servers *servers);
/* Hand on the messages that have come. */
void http_process(struct servers *servers);
/* Whether an end of a session is still on its way to its server. */
bool http_parting(const struct servers *servers);
void http_loop_free(struct servers *servers);

/* ---- servers.c ---- */

/* There is something to do: it is done in this round of the loop, or in the next one. */
void servers_touch(struct servers *servers);
