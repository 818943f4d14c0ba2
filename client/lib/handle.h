/* Inside liblair: the handle and its calls. */
#pragma once

#include "proto/clock.h"
#include "proto/message.h"
#include "proto/paths.h"

#include "lair.h"

#include <zmq.h>

struct answer_queue;

struct lair {
	char socket[PATH_SIZE];
	const char *shown; /* in errors, for the socket */
	char *config;	   /* NULL: the daemon's choice */
	bool no_start;
	double timeout;
	size_t batch;
	bool started;
	char error[1024];
	char setting[512];

	/* while connected; else NULL and -1. Between two connections only the sockets are missing */
	void *context, *dealer, *monitor;
	int epoll, wake, timer;
	unsigned n_connections;
	bool lost;
	uint64_t frame_max; /* 0: not known yet */
	char instance[64];  /* of the daemon that was greeted; "": none was */

	/* while another connection is made, because the last one ended */
	bool resuming;
	double resuming_since;
	unsigned attempts;
	struct lair_call *greeting;

	unsigned char random[256]; /* for keys: the first n_random are not used yet */
	size_t n_random;

	uint64_t last_id;
	struct lair_call *first, *last; /* the pending calls, oldest first */

	struct answer_queue *queue; /* answers to calls of functions, which other threads put there */
};

struct lair_call {
	struct lair *lair; /* NULL once the handle is gone */
	struct lair_call *previous, *next;
	uint64_t id;
	int outcome;	/* -EINPROGRESS, then 0 or an error */
	char *error;	/* NULL or the sentence */
	char *setting;	/* NULL, or which decided that */
	bool keyed;	/* the daemon does it once, even if it is sent again */
	bool own;	/* liblair has started it; its on_done frees it, and always runs */
	bool forgotten; /* the caller has freed it; it stays only until its request is done */

	const struct wire_schema *asked; /* the kind of the request, */
	msgpack_sbuffer request;	 /* and its frame, until it is answered */
	uint64_t seen[2], displays;	 /* how much of each stream has come, and how many displays */
	uint64_t asks;			 /* the number of the last question that has come */
	struct lair_calling *callings;	 /* the calls of its cell that have come and have no answer yet, */
	uint64_t *held;			 /* and the numbers of those that ask to be approved */
	size_t n_held;
	char *cell_name; /* of its cell, for their keys; NULL: not needed yet */

	const struct wire_schema *reply; /* the kind of a good answer */
	zmq_msg_t frame;		 /* the answer, which the texts below point into */
	union {
		struct lair_daemon daemon;
		struct lair_session session;
		struct lair_result result;
		struct lair_counters counters;
		struct lair_items list;
		struct lair_state state;
		struct lair_difference difference;
		struct lair_effects effects;
		struct lair_piece piece;
		struct lair_transfer transfer;
		struct lair_listing listing;
		struct lair_detached detached;
		struct lair_completions completions;
		struct lair_inspection inspection;
		struct lair_variables variables;
		struct lair_checked checked;
		struct lair_completeness completeness;
		struct lair_stray stray;
		struct lair_saved saved;
		struct {
			struct lair_loaded loaded;
			struct lair_ended ended;
		} load;
		struct lair_package_sets package_sets;
		struct lair_stopped stopped;
		struct lair_reloaded reloaded;
		struct lair_waiting_list waiting;
		uint64_t turn;
		bool interrupted;
	} answer;

	struct lair_exec exec; /* only the callbacks and their userdata */
	void (*on_done)(struct lair_call *call, void *userdata);
	void *userdata;
};

static inline struct bytes bytes_from(struct lair_text text)
{
	return (struct bytes){.data = text.data, .size = text.size};
}

static inline struct bytes bytes_from_items(struct lair_items items)
{
	return (struct bytes){.data = items.data, .size = items.size};
}

static inline struct lair_text text_from(struct bytes bytes)
{
	return (struct lair_text){.data = bytes.data, .size = bytes.size};
}

static inline struct lair_items items_from(struct bytes bytes)
{
	return (struct lair_items){.data = bytes.data, .size = bytes.size};
}

/* The members of a struct of lair.h that have the names of their message's fields: TAKE copies each, in an
 * initialiser. */
#define TAKE_FLAG(value) (value)
#define TAKE_UINT(value) (value)
#define TAKE_INT(value) (int)(value)
#define TAKE_REAL(value) (value)
#define TAKE_STR(value) text_from(value)
#define TAKE_BIN(value) text_from(value)
#define TAKE_RAW(value) items_from(value)
#define TAKE(message, kind, field, need) .field = TAKE_##kind((message)->field),

/* The part of @timeout that is left since @start (clock_seconds()), for poll: -1 for LAIR_FOREVER. Rounded up, so
 * that it is 0 only if nothing is left. */
int clock_left_ms(double start, double timeout);

/* Keep the sentence in @lair, and return @error. */
int lair_fail(struct lair *lair, int error, const char *format, ...) _printf_(3, 4);

/* The LAIR_E_* of a code of the protocol. */
int lair_error_of(struct bytes code);

/* Send a request, which begins with its id, as a new call. @reply: the kind of a good answer. Returns as the
 * functions of lair.h. */
int call_start(struct lair_call **callp, struct lair *lair, const struct wire_schema *schema, void *request,
	       const struct wire_schema *reply);
/* A new pending call, at the end of the list. NULL without memory. */
struct lair_call *call_new(struct lair *lair, const struct wire_schema *reply);
/* End @call and run its on_done. @call may be gone afterwards. */
void call_end(struct lair_call *call, int outcome, struct bytes sentence);
/* Handle one message from the daemon. It is taken over. */
void call_dispatch(struct lair *lair, zmq_msg_t *message);

/* Send the request of @call, now or after the greeting. Returns as the functions of lair.h do. */
int handle_send(struct lair *lair, const struct lair_call *call);
void handle_greeted(struct lair *lair, const struct lair_daemon *daemon);

/* resume.c: the connection has ended. The requests of pending calls are sent again over another connection, or the
 * calls end. */
void resume_begin(struct lair *lair);
void resume_on_timer(struct lair *lair);
/* Stop making another connection, and forget its greeting. */
void resume_stop(struct lair *lair);

/* transport.c. Return 0 or -errno where they return int. */
enum source { SOURCE_DEALER, SOURCE_MONITOR, SOURCE_WAKE, SOURCE_TIMER };

/* Open and close everything that lasts as long as the handle is connected. */
int transport_open(struct lair *lair);
void transport_close(struct lair *lair);
/* Make a connection in place of the last one, with room for @n_waiting requests at once. */
int transport_connect(struct lair *lair, unsigned n_waiting);
void transport_disconnect(struct lair *lair);
/* Whether the connection has ended. */
bool transport_ended(struct lair *lair);
bool transport_readable(const struct lair *lair);
/* Wait, and return the set of sources that have something; negative: -errno. This resets SOURCE_WAKE and
 * SOURCE_TIMER. */
int transport_wait(struct lair *lair, int timeout_ms);
void transport_wake(struct lair *lair);
/* Wake the handle once, after so many seconds; 0: never. */
void transport_wake_after(struct lair *lair, double seconds);

/* start.c: whether a socket at this path can be trusted. Returns 0, LAIR_E_NO_DAEMON (there can be none),
 * LAIR_E_DENIED or -errno, with a sentence. */
int socket_trust(struct lair *lair);
/* start.c: the same, and whether something listens there: LAIR_E_NO_DAEMON if not. */
int socket_probe(struct lair *lair);
/* start.c: make a daemon listen, or find that another client just did. Returns 0, LAIR_E_START, LAIR_E_DENIED,
 * -ETIMEDOUT or -errno, with a sentence. */
int daemon_start(struct lair *lair, double timeout);

/* calling.c: the calls that a cell makes of functions. Events of an exec or attach, */
void calling_on_call(struct lair_call *call, struct bytes body);
void calling_on_held(struct lair_call *call, struct bytes body);
void calling_on_cancel(struct lair_call *call, struct bytes body);
/* and its end: its open calls are cancelled. */
void callings_end(struct lair_call *call);

/* answer_queue.c: answers wait here until the thread of the handle sends them. */
struct answer_queue *answer_queue_new(void);
/* No answer can be put here any more. Returns NULL. */
struct answer_queue *answer_queue_close(struct answer_queue *queue);
/* Which descriptor to write to when there is an answer; -1: none. */
void answer_queue_watch(struct answer_queue *queue, int wake);
/* Send the answers. */
void answer_queue_flush(struct lair *lair);

/* json.c: append @json, one value, as msgpack. Returns 0, -EINVAL or -ENOMEM. */
int json_pack_text(msgpack_sbuffer *buffer, struct lair_text json);

/* items.c: parts of other messages than elements of a list, too. */
struct lair_ended items_ended(struct bytes body);
struct lair_loaded items_loaded(double age, struct bytes names, struct bytes refused, struct bytes damaged);
struct lair_effects items_effects(struct bytes effects, uint64_t more);
struct lair_back items_back(struct bytes files, uint64_t more, struct bytes stay);
void items_session(struct lair_session *session, const struct session_info *info);
struct lair_display items_display(const struct shown *shown);
