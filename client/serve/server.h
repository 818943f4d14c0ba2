/* The server: its loop, its connections, and whom it serves. */
#pragma once

#include "serve.h"

#include "proto/event.h"

#include <jansson.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct MHD_Connection;
struct exchange;
struct peer;
struct tenant;
struct token;

TAILQ_HEAD(connection_list, connection);

/* A connection of a client. */
struct connection {
	struct server *server;
	struct connection *previous, *next;
	TAILQ_ENTRY(connection)
	of_all, of_peer;	    /* strangers of the server or idle ones of its tenant; of its address */
	struct event_source source; /* while the exchange is suspended: whether the client hangs up */
	int fd;
	struct peer *peer;     /* a stranger's address */
	struct tenant *tenant; /* whose token its last request had; NULL: a stranger's */
	bool idle, closing;
	double due; /* when the next request must have come; 0: one is being handled */
	struct exchange *exchange;
	uint64_t n; /* requests that it has made */
};

struct server {
	const struct serve_options *options;
	struct MHD_Daemon *http;
	struct event_loop loop;
	struct event_loop streams_loop; /* of lines that carry streams; in the other one, unless streams rest */
	bool streams_ready, others_ask;
	double streams_rest;	      /* until then; 0: they do not */
	int signals, listener, local; /* local: see local.h; -1 with tokens */
	struct event_source on_http, on_signal, on_listener, on_streams;
	struct connection *connections;
	struct connection_list strangers; /* oldest first */
	void *peers;			  /* tsearch(3), by address */
	struct exchange *exchanges;
	size_t n_connections, n_closing, n_exchanges;
	struct tenant *tenants;
	uint64_t bodies;  /* bytes of bodies that wait in memory, */
	uint64_t streams; /* and of streams whose clients have not read them */
	double next_tick;
	struct stat token_file; /* as it was read; zeroes: it could not be */
	bool ending, open;	/* open: no tokens are needed */
	bool deaf;		/* there was no descriptor for a connection, so none is accepted for a moment */
	char address[128];	/* that it listens on */
	struct doors_state {
		void *e2b, *mcp, *dashboard, *native;
	} doors; /* a door's own, for its open and close */
};

/* The limits of a token. */
struct limits {
	uint64_t sessions; /* at once; 0: any */
	double rate;	   /* requests a second; 0: any */
	uint64_t requests; /* at once; 0: any */
};

/* A connection to laird. */
struct line {
	struct tenant *tenant;
	struct event_source source;
	struct lair *lair;
	int fd;	      /* of @lair; -1: not connected */
	double retry; /* when to try to connect again */
	double held;  /* nothing is read from it until then; 0: it is read from */
	double hasty; /* until then it is not held: it was, in vain */
	size_t n_users, n_stops;
};

/* Lines of streams that are to arrive whole: a client that reads slowly stops the cells of its line. */
#define FLOWS 4

struct tenant {
	struct server *server;
	struct tenant *next;
	char *name;
	char *prefix;	 /* of its sessions, in laird; "" without tokens */
	char **profiles; /* the token's: that it may name, ended by NULL; NULL: any */
	struct limits limits;
	struct token *token; /* owned; NULL without tokens */
	json_t *seats;	     /* of its sessions, if they are limited: seats.c */
	bool listed;	     /* they include all that laird has had when it was asked */
	struct line requests;
	struct line streams;	     /* what cells write comes over this one, so that no answer is behind it */
	struct line flows[FLOWS];    /* the same, of streams that lose nothing: exchange_flow */
	struct lair *lair;	     /* of requests */
	double asked;		     /* when its last request came */
	double tokens, refilled;     /* the rest of its rate, and since when */
	struct feed *feeds;	     /* of cells that its streams follow: feeds.h */
	struct connection_list idle; /* connections without a request, the longest unused first */
	size_t n_connections;
	size_t n_exchanges, n_lookers; /* lookers: exchanges that wait for calls of functions */
	struct lair_call *watch;       /* tells when these have changed; NULL: nothing does */
	uint64_t turn;		       /* the last turn of it; 0: none */
	bool revoked;
};

/* ---- server.c ---- */

double server_now(void);
/* Something has come for a tenant over a line that carries streams. */
void server_streamed(const struct line *line);
/* Whether the host name of a Host or Origin header, with or without a port, is one of this machine's loopback. */
bool host_is_loopback(const char *host, size_t size);

/* ---- connections.c ---- */

/* Accept connections on server->listener. Returns 0 or -errno. */
int connections_open(struct server *server);
void connections_tick(struct server *server, double now);
/* How many libmicrohttpd has to have room for. */
unsigned connections_limit(void);
/* libmicrohttpd has one more, with *contextp for us; it has one less. */
void connection_begin(struct server *server, struct MHD_Connection *http, void **contextp);
void connection_end(struct connection *connection);
/* A request has come on @connection; it has been answered; */
void connection_works(struct connection *connection, struct exchange *exchange);
void connection_rests(struct connection *connection);
/* it had the token of @tenant. Returns false if that has too many connections, and none of them is idle. */
bool connection_shown(struct connection *connection, struct tenant *tenant);
/* @tenant ends. */
void connections_drop(struct tenant *tenant);
/* Notice the hang-up of its client while nothing reads from it: exchange_drop. */
void connection_watch(struct connection *connection);
void connection_unwatch(struct connection *connection);
/* pages.c: the first of a list of origins that is none; NULL: all are. */
const char *origins_wrong(const char *list);

/* ---- seats.c ---- */

void seats_free(struct tenant *tenant);
/* End a session; from now on it does not count. */
void seat_end(struct tenant *tenant, const char *session);
/* It has ended. */
void seat_gone(struct tenant *tenant, const char *session);

/* ---- tenants.c ---- */

int tenants_open(struct server *server);
void tenants_close(struct server *server);
/* Read the file of tokens again if it is another. Returns 0 or -errno, having said why. */
int tenants_reload(struct server *server);
void tenants_sweep(struct server *server);
/* Whose token this is; NULL: nobody's. Without tokens everybody is the one tenant. */
struct tenant *tenant_of(struct server *server, const char *token);
/* Connect it, if it is not. Returns 0 or an error, with a sentence. */
int line_open(struct line *line, const char **sentencep);
/* Read nothing from it for so many seconds, or until line_resume. Not if that was in vain lately: all who share it
 * wait meanwhile. */
void line_hold(struct line *line, double seconds);
void line_resume(struct line *line);
/* Read nothing from it until line_start was called as often. */
void line_stop(struct line *line);
void line_start(struct line *line);
/* One of tenant->flows, for one more user: the one with the fewest. It may have to be opened. */
struct line *flow_use(struct tenant *tenant);
/* Returns NULL. */
struct line *flow_leave(struct line *line);
/* Whether one more request is within its rate: 0, or in how many seconds it will be. */
double tenant_admit(struct tenant *tenant);
/* Whether it may name that profile. */
bool tenant_may(const struct tenant *tenant, const char *profile);
/* The part of a session's name that is the tenant's own; absent if the session is not its. */
struct lair_text tenant_own(const struct tenant *tenant, struct lair_text session);
