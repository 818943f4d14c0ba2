/* The bridge: notebooks on one side, laird on the other. A job is a request of a notebook. Those on the shell
 * channel are answered one after the other, in the order in which they came; those on the control channel at once.
 * job_reply ends a job, which is freed then. */
#pragma once

#include "jupyter.h"

#include "sockets.h"

#include "proto/event.h"

#define SESSION_SIZE 129
#define IDENTITY_SIZE 33

struct bridge;
struct job;

/* The next step of a request, once the daemon has answered its call. */
typedef void step(struct job *job);

struct handler {
	const char *type;
	step *begin;
	bool at_once; /* it waits for no other request */
	bool silent;  /* there is no reply: <type>_reply */
	bool is_cell; /* an interrupt is for it, too */
};

struct job {
	struct bridge *bridge;
	struct job *next; /* in the queue */
	const struct handler *handler;
	enum channel channel;
	struct frames frames;
	struct message message;
	struct lair_call *call; /* that it waits for; NULL: none */
	step *then;
	bool begun;
	/* execute.c and directives.c */
	bool silent, shown, aborted; /* shown: one of the notebook's cells */
	bool asks;		     /* its cell waits for a line from the client */
	unsigned interrupts;	     /* how often its cell was interrupted */
	json_t *payload, *told;	     /* owned; of the reply, and answers to user_expressions */
	size_t payload_size;
	void *expression; /* the next of these */
	char **words;	  /* of a directive, ended by NULL; owned, as is their text */
	char *text;
	char *name; /* of a session for a moment, owned */
	uint64_t count;
};

/* Output that waits for more of it. */
struct gathered {
	char *data, *written; /* owned; written: the message's content */
	size_t size, allocated;
	enum lair_stream stream;
	double due; /* when it goes out; 0: there is none */
};

/* A message for everybody that waits until all who listen have room for it. */
struct held {
	struct held *next;
	struct frames frames;
};

/* While there are any, nothing is read from the daemon, so that the code that prints waits, too. */
struct holding {
	struct held *first, *last;
	double since;	   /* when the last one of them went out, or the first came */
	struct held *open; /* to which the frames of a message go; NULL: out */
	bool within;	   /* more frames of it come */
	size_t size;	   /* of all of them */
	uint64_t missed;   /* how many have gone out since a client was given up, and nobody was told */
};

/* One state of the session. */
struct state {
	uint64_t cell;
	bool shown; /* by a cell of the notebook, not by a message or a silent one */
};

#define STATES 512

struct bridge {
	const struct jupyter_options *options;
	struct sockets sockets;
	struct signer signer;
	struct lair *lair; /* NULL: not connected yet */
	struct event_loop loop;
	struct event_source on_lair, on_signal, on_parent, on_channel[N_CHANNELS];
	int signals, parent; /* owned descriptors, -1: none */
	uint64_t memory;     /* the limit that this process was started with */
	char identity[IDENTITY_SIZE];
	uint64_t n_sent;
	/* the session */
	char session[SESSION_SIZE];
	const char *profile; /* static or of the options; NULL: the daemon's */
	bool own;	     /* it ends with this kernel */
	bool known;	     /* it is open, and @birth and @cells are its own */
	uint64_t birth, cells;
	char language[16], version[32]; /* what the session speaks; "": not known yet */
	uint64_t count; /* of the notebook's cells: those that are silent or not in its history do not count */
	struct state states[STATES]; /* its last states, oldest first */
	size_t n_states;
	bool comms;		   /* it may have some */
	struct lair_call *opening; /* the session is being opened: cells wait */
	char *untold;		   /* what that says of its variables, until a cell shows it; owned */
	struct lair_call *stay;
	double stay_due;
	/* requests */
	struct job *first, *last; /* the first is at work, if it has begun */
	struct job *aside;	  /* those that wait for no other */
	size_t n_waiting;
	struct gathered gathered;
	struct holding holding;
	char *outstanding;  /* the path of the file that says which cell runs; owned */
	int outstanding_fd; /* it, locked, while one does; -1: none */
	bool heard;	    /* a client listens */
	bool ending;
};

/* ---- bridge.c ---- */

/* A new message. Documents are taken over, and NULL is {}. @parent is a header, borrowed. */
struct outgoing {
	const char *type;
	json_t *content, *metadata;
	struct lair_text written; /* in the place of @content: JSON, borrowed */
	const json_t *parent;
	const struct lair_text *buffers;
	size_t n_buffers;
};

/* To all listeners. Output that waits goes before it. */
void publish(struct bridge *bridge, struct outgoing message);
void publish_status(struct bridge *bridge, const json_t *parent, const char *state);
/* To who has sent @job, on @channel. */
void job_send(struct job *job, enum channel channel, struct outgoing message);

/* @content is taken over. The request ends. */
void job_reply(struct job *job, json_t *content);
/* A reply with an error. */
void job_fail(struct job *job, const char *name, const char *sentence);
/* The daemon, with the session open; NULL after job_fail. Not in a callback. */
struct lair *job_lair(struct job *job);
/* Go on with @then once the call in @job->call, which was started with the result @started, has an outcome. If
 * it could not be started, the request fails. */
void job_wait(struct job *job, int started, step *then);
/* The header of the message. Borrowed. */
const json_t *job_header(const struct job *job);
/* Puts a request at the end of the queue. It has a message, and maybe no sender. */
void job_add(struct bridge *bridge, struct job *job, const struct handler *handler);
/* Takes everything that has come into the queues, and begins none of it. */
void bridge_receive(struct bridge *bridge);
/* The request that is at work, or NULL. */
struct job *bridge_current(const struct bridge *bridge);

/* A change of the session's state, so that %undo counts cells of the notebook. */
void state_note(struct bridge *bridge, uint64_t cell, bool shown);
void state_back(struct bridge *bridge, uint64_t cell);

/* ---- holding.c: clients that do not read ---- */

/* One frame of a message for everybody. */
void iopub_send(struct bridge *bridge, struct lair_text frame, bool more);
/* Sends held messages, if there is room. A client that has not read for long is given up. */
void holding_turn(struct bridge *bridge);
/* Sends what waits, to all who have room. */
void holding_end(struct bridge *bridge);
/* Reports in the output of the request the messages that a client has missed. */
void holding_tell(struct job *job);

/* ---- handlers ---- */

extern const struct handler handlers[];
extern const size_t n_handlers;

/* execute.c */
void execute_begin(struct job *job);
/* As job_fail, and everybody sees it. */
void execute_refuse(struct job *job, const char *name, const char *sentence);
/* The same for what laird has refused: its call has the sentence. */
void execute_refused(struct job *job);
/* It has done what it should. */
void execute_done(struct job *job);
/* Output of the request that is at work. */
void output_gather(struct bridge *bridge, enum lair_stream stream, struct lair_text data);
void output_flush(struct bridge *bridge);
/* A line for the cell that waits for one. */
void input_take(struct bridge *bridge, const struct message *message);
void comm_begin(struct job *job);
void comm_info_begin(struct job *job);
/* A cell that an earlier kernel of this session has left: its output comes now. */
void outstanding_take_up(struct bridge *bridge);
/* Interrupts the cell that runs. Asked for often, kills it. */
void bridge_interrupt(struct bridge *bridge);

/* shown.c */
void show_display(struct job *job, const struct lair_display *display);
/* The forms of a value; *metadatap: what describes them. Both new. */
json_t *forms_of(struct lair_items bundle, json_t **metadatap);
json_t *result_error(const struct bridge *bridge, const struct lair_result *result);
void show_notices(struct job *job, const struct lair_result *result);
/* Whether the variables of the session are back, for the next cell to show. */
void keep_notices(struct bridge *bridge, const struct lair_session *session);
/* A line in the output of the request. */
void line_show(struct job *job, enum lair_stream stream, const char *format, ...) _printf_(3, 4);
#define tell_line(job, ...) line_show(job, LAIR_STDERR, __VA_ARGS__)

/* questions.c */
void complete_begin(struct job *job);
void inspect_begin(struct job *job);
void is_complete_begin(struct job *job);
void history_begin(struct job *job);

/* directives.c: whether the code of @job is one, which then has begun. */
bool directive_begin(struct job *job, const char *code);
