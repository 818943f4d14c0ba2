/* An exchange: one request of HTTP and its answer. All of this runs in one thread, and nothing here waits.
 *
 * A route's handler begins when the request has come, with its body. It answers at once, or later, when a call of
 * liblair has been answered: meanwhile the connection is suspended and costs nothing. It answers exactly once: with
 * one of answer_..., or with stream_begin, stream_write and then stream_end or stream_break.
 *
 * The exchange ends when its answer has been sent, or when the client goes away: then on_gone runs first, if the
 * answer was not complete. Afterwards its calls are freed, and its state by free_state. */
#pragma once

#include "server.h"
#include "target.h"

#include <microhttpd.h>

struct exchange;
struct download;
struct route;

typedef void handler(struct exchange *exchange);

/* For which page a browser sends a request; programs send them for none. */
enum page { PAGE_NONE, PAGE_OWN, PAGE_NAMED, PAGE_FOREIGN };

struct exchange {
	struct server *server;
	struct connection *connection;
	struct exchange *previous, *next; /* of the server */
	struct MHD_Connection *http;
	struct target target;
	const char *method;
	const struct door *door;
	const struct route *route; /* NULL until it is found */
	struct tenant *tenant;	   /* NULL until it is known */
	enum page page;

	/* for handlers */
	struct lair *lair;	/* of its calls; NULL: not used yet */
	json_t *json;		/* the body, if the route has a schema for it; borrowed */
	struct lair_call *call; /* that it waits for: exchange_wait; freed with the exchange */
	struct lair_call *kept; /* another that it needs; freed with it */
	handler *on_gone;	/* the client went away before the answer was complete */
	handler *on_room;	/* all that was written to the stream has been sent, or nearly */
	/* With ROUTE_RAW: a piece of the body. Takes as much of it as it likes, and returns how much. If it takes
	 * less, it gets the rest after exchange_more. At the end of the body @size is 0. */
	size_t (*on_body)(struct exchange *exchange, const char *data, size_t size);
	/* Its stream comes over this line, and all of it must arrive: see exchange_flow. */
	struct line *flow;
	struct download *download; /* files.c's; within the state */
	void *state;
	void (*free_state)(void *state);

	/* exchange.c's own */
	int failed; /* target: 0 or -errno */
	handler *then, *on_alarm;
	double alarm; /* when on_alarm runs; 0: never */
	char *body, *out;
	size_t body_size, body_allocated, out_at, out_size, out_allocated;
	struct header *headers; /* of the answer */
	struct MHD_Response *response;
	unsigned status;
	double began;
	bool routed, begun, ended_body, suspended, paused, queued, streaming, ended, broken, gone, head, close;
	bool stops;	       /* flow */
	double read;	       /* when the client has last read something of a stream that stops its flow */
	bool urgent;	       /* for handlers: writes to the stream have room in any case */
	struct seat *seats[2]; /* seats.c's: of sessions that it may open */
	handler *again;	       /* when they have been counted, */
	double asked;	       /* which laird was asked for then; */
	bool counted;	       /* they were, for it */
	bool interrupts;       /* for handlers: to go away interrupts the cell */
};

/* ---- the request ---- */

/* A parameter of the route's path; never NULL for one that the route has. */
const char *exchange_path(const struct exchange *exchange, const char *name);
/* NULL: absent. */
const char *exchange_query(const struct exchange *exchange, const char *name);
const char *exchange_header(const struct exchange *exchange, const char *name);
struct lair_text exchange_body(const struct exchange *exchange);
/* A member of the JSON body, of the type that the schema says; NULL, 0 or false if it is absent or null. */
const char *exchange_string(const struct exchange *exchange, const char *name);
double exchange_number(const struct exchange *exchange, const char *name);
bool exchange_flag(const struct exchange *exchange, const char *name);
/* A parameter of the query, as a number or as "true" or "1"; 0 or false if it is absent. */
uint64_t exchange_query_number(const struct exchange *exchange, const char *name);
bool exchange_query_flag(const struct exchange *exchange, const char *name);
/* Whether Accept names this type. */
bool exchange_accepts(const struct exchange *exchange, const char *type);

/* ---- laird ---- */

/* The tenant's connection, which is there; NULL after the exchange has been answered with 503. */
struct lair *exchange_lair(struct exchange *exchange);
/* The same, of the connection for calls with on_output. */
struct lair *exchange_streams(struct exchange *exchange);
/* The same, of one of the tenant's flows: writes to the stream have room in any case, and while its client
 * has much to read, nothing is read from the flow. So laird lets the cells wait, also others of that flow. */
struct lair *exchange_flow(struct exchange *exchange);
/* The name that laird has for the tenant's session @id; valid as long as the exchange lives. NULL after it has been
 * answered, since the id is too long. */
const char *exchange_session(struct exchange *exchange, const char *id);
/* seats.c: for a handler that may open @session, as laird names it: whether the tenant may have one more. It counts
 * from now on. If not, the exchange has been answered, or the handler begins once more, or @again does, when the
 * sessions have been counted. */
bool session_admitted(struct exchange *exchange, const char *session);
bool session_admitted_again(struct exchange *exchange, const char *session, handler *again);
/* The same for a one-shot, whose name is told later. */
bool once_admitted(struct exchange *exchange);
void once_named(struct exchange *exchange, const char *session);
/* For exchange.c: the exchange opens nothing any more. @complete: laird has answered it. */
void seats_leave(struct exchange *exchange, bool complete);
/* Go on with @then once exchange->call, which was started with the result @started, has an outcome of 0. Otherwise
 * the exchange is answered with the error. */
void exchange_wait(struct exchange *exchange, int started, handler *then);
/* The same, but @then runs with whatever outcome. */
void exchange_wait_any(struct exchange *exchange, int started, handler *then);
/* Answer with the error that exchange->call ended with. */
void exchange_refuse(struct exchange *exchange);
/* The key of the wire for an Idempotency-Key of the client, told apart by tenants; NULL if there is none, or after
 * the exchange has been answered, since it is none: see *badp. */
#define KEY_SIZE 65
bool exchange_key(struct exchange *exchange, char key[static KEY_SIZE], bool *badp);

/* @fn in so many seconds, or up to a quarter of one later. 0: not at all. */
void exchange_alarm(struct exchange *exchange, double seconds, handler *fn);
/* on_body can take more now. */
void exchange_more(struct exchange *exchange);

/* ---- the answer ---- */

/* Before the answer. Both are copied. An invalid header is left out. */
void answer_header(struct exchange *exchange, const char *name, const char *value);
/* @document is taken over. ASCII only. */
void answer_json(struct exchange *exchange, unsigned status, json_t *document);
/* @text is copied. */
void answer_text(struct exchange *exchange, unsigned status, const char *type, struct lair_text text);
/* @text is static, for ever. */
void answer_static(struct exchange *exchange, unsigned status, const char *type, struct lair_text text);
void answer_empty(struct exchange *exchange, unsigned status);
/* An error, in the form of the door: problem+json, unless the door has another. @code: of the socket, or one of
 * HTTP's.
 */
void answer_problem(struct exchange *exchange, unsigned status, const char *code, const char *format, ...)
	_printf_(4, 5);
/* The same, for an error of liblair. */
void answer_error(struct exchange *exchange, int error, const char *sentence);
/* The status that is for it. */
unsigned status_of(int error);

/* A body that comes little by little. @size: its size, or STREAM_OPEN: it ends when it ends. */
#define STREAM_OPEN UINT64_MAX
void stream_begin(struct exchange *exchange, unsigned status, const char *type, uint64_t size);
/* Appends a copy of @text to the stream. Returns false, and writes nothing, if the client does not read and there
 * are STREAM_MAX bytes already (less if there are many such clients), or memory is short, or the client has gone.
 */
#define STREAM_MAX ((size_t)8 << 20)
bool stream_write(struct exchange *exchange, struct lair_text text);
/* The same for a document, which is taken over: as a line, ASCII only. */
bool stream_line(struct exchange *exchange, json_t *document);
/* The same as an event of a text/event-stream. @id may be NULL. */
bool stream_event(struct exchange *exchange, const char *event, const char *id, json_t *document);
/* Whether so much would be written. */
bool stream_fits(const struct exchange *exchange, size_t size);
/* How many bytes have not been sent yet. */
size_t stream_waiting(const struct exchange *exchange);
void stream_end(struct exchange *exchange);
/* Break the connection, so that the client sees that the answer is not whole. Also before any answer. */
void stream_break(struct exchange *exchange);

/* ---- routes ---- */

enum {
	ROUTE_OPEN = 1,	   /* it needs no token */
	ROUTE_RAW = 2,	   /* its handler begins before the body has come, and sets on_body */
	ROUTE_HIDDEN = 4,  /* not in /openapi.json */
	ROUTE_KEY = 8,	   /* it takes an Idempotency-Key */
	ROUTE_EVENTS = 16, /* its answer may be a text/event-stream */
	ROUTE_BYTES = 32,  /* body or answer is application/octet-stream: body if RAW, else answer */
	ROUTE_ASIDE = 64,  /* no limit of the rate */
	ROUTE_OWN = 128,   /* of all pages only the dashboard may ask for it */
};

struct route {
	const char *method, *path;
	handler *begin;
	const char *summary;
	const char *query;  /* its parameters: an object of JSON Schemas, and required; NULL: any, unread */
	const char *body;   /* the name of the schema of its JSON body; NULL: it reads none, or any */
	const char *answer; /* the name of the schema of its answer; NULL: it is empty, or not JSON */
	unsigned status;    /* of a good answer; 0: 200 */
	unsigned flags;
	const char *media;	 /* the type of an answer that is neither JSON nor bytes, or NULL */
	const char *description; /* more about it, or NULL */
};

/* A front door: routes that belong together. Doors are asked in order. */
struct door {
	const char *name;
	/* Whether the request is for this door, and for no later one; NULL: if it has a route of that path. */
	bool (*claims)(const struct exchange *exchange);
	const struct route *routes;
	size_t n_routes;
	/* The token of the request, or NULL; NULL: Authorization: Bearer. */
	const char *(*credential)(const struct exchange *exchange);
	/* The tenant, if the token alone does not determine it; or NULL. */
	struct tenant *(*asker)(const struct exchange *exchange);
	/* An error in this door's own form; NULL: problem+json. */
	void (*fail)(struct exchange *exchange, unsigned status, const char *code, const char *sentence);
	/* Once, when the server begins and when it ends; or NULL. */
	int (*open)(struct server *server);
	void (*close)(struct server *server);
	/* A few times a second; or NULL. */
	void (*tick)(struct server *server, double now);
};

/* routes.c: find door and route of a request. Returns whether there is one; otherwise it has been answered. */
bool route_find(struct exchange *exchange);

/* ---- pages.c ---- */

/* Whether the page that the request is for may make it; exchange->page is set. Otherwise it has been answered. */
bool page_may(struct exchange *exchange);
/* Whether any page could make a browser send it without asking first: no such request is to change anything. */
bool exchange_is_simple(const struct exchange *exchange);
/* The headers of the answer to a browser that asks first whether a page may send one of @methods. */
void page_preflight(struct exchange *exchange, const char *methods);

/* heads.c: why the head of a request could be read in two ways; NULL: it cannot. */
const char *head_wrong(const struct exchange *exchange, const char *version);

/* ---- for server.c ---- */

/* libmicrohttpd does not change it, but says so in no type. */
void *text_unconst(const char *data);

struct exchange *exchange_new(struct server *server, struct MHD_Connection *http, const char *uri);
enum MHD_Result exchange_access(struct exchange *exchange, const char *method, const char *version,
				const char *upload, size_t *size);
void exchange_completed(struct exchange *exchange);
/* A client that holds up its flow, and reads nothing, is given up after a while. */
void exchange_check_flow(struct exchange *exchange, double now);
/* The client has gone, or the server ends. */
void exchange_drop(struct exchange *exchange);
