/* Commands and watchers, and the streams that listen to them. A command runs on without any. */
#pragma once

#include "e2b.h"

struct stream {
	struct work work;
	struct exchange *exchange;
	struct process *process;
	struct stream *next; /* of the process */
	struct envelope envelope;
	double deadline, alive; /* on our clock; in seconds: 0: none */
	bool owns;		/* its deadline is the process's */
	uint64_t looks;		/* it waits for this look of a watcher, and not for what streams are told */
	bool found, over;	/* of StreamInput: its sandbox; its body has ended */
};

struct process {
	struct process *next;
	struct sandbox *sandbox;
	struct stream *streams;
	struct lair_call *call;
	struct line *flow; /* that it writes over */
	char *session, *tag;
	json_t *config, *orders, *report, *events;
	json_t *early; /* what it wrote before its number was known: the SDKs want that first */
	uint64_t pid, looks;
	double deadline; /* on our clock; it holds also if nobody listens any more */
	char *line;	 /* of a watcher: the beginning of one */
	size_t line_size;
	bool pty, watches, watching, asks, ending;
};

/* ---- streams.c ---- */

/* Write @message to all streams of the process; it is taken over. */
void process_tell(struct process *process, json_t *message);
/* A message with one event; @value is taken over. */
json_t *process_event(const char *name, json_t *value);
/* No stream listens any more: each ends with @code, or well; "lost" breaks it. */
void streams_end(struct process *process, const char *code, const char *message);
void stream_join(struct stream *stream, struct process *process);
void stream_leave(struct stream *stream);
/* Read the only message of a streaming call, and begin to answer. False if it has been answered. */
bool stream_opens(struct exchange *exchange);
/* work.finish of a stream. */
void stream_finish(struct work *work);

/* ---- processes.c ---- */

/* Whether there may be one more; otherwise it is answered. */
bool process_room(struct exchange *exchange);
struct process *process_new(struct sandbox *sandbox, const char *session);
/* Run the program in its branch. If that fails, the process is freed. */
int process_run(struct process *process, const char *program, const json_t *given);
/* A line for the cell; @order is taken over. */
bool process_order(struct process *process, json_t *order);
void process_kill(struct process *process);
/* The command that a request names. */
struct process *process_find(const struct sandbox *sandbox, const json_t *asked);

/* ---- commands.c ---- */

/* Write the input of a request into it. */
bool process_input(struct process *process, const json_t *asked);

/* ---- watchers.c ---- */

/* Output of a watcher's cell. */
void watch_output(struct process *process, struct lair_text data);
