/* The router's end of one interpreter: its exec channel and the two pipes that carry its output. Hostile code
 * may have written every byte that comes in here. */
#pragma once

#include "base/graveyard.h"
#include "peer.h"

#include "proto/message.h"
#include "proto/sha256.h"

struct tenant;
struct warden;

enum interpreter_stream { STREAM_STDOUT, STREAM_STDERR };

/* A live one runs cells. A frozen one only waits on its channel to be forked again, and has no pipes. */
enum interpreter_role { ROLE_LIVE, ROLE_FROZEN };

/* What travels with `spawn`: channel, stdout, stderr, the memory file of proto/outbuffer.h. */
#define INTERPRETER_FDS 4

/* What of it the keeper has. */
enum interpreter_stored { STORED_NOTHING, STORED_BOTH, STORED_OURS };

struct interpreter {
	struct list node; /* in its warden */
	struct grave grave;
	struct warden *warden;
	uint64_t serial;
	enum interpreter_role role;
	bool adopted; /* its warden knows it */
	bool alive;   /* and it has its descriptors */
	bool loose;   /* nobody knows when it will be there: no sweep waits for it, and one may take it */
	enum interpreter_stored stored;
	uint64_t size;	       /* of a frozen one: bytes it had beyond the image when it was made */
	struct tenant *tenant; /* who is told; NULL while it is a spare */
	struct peer peer;      /* its exec channel */
	int pipes[2];
	int buffer; /* struct outbuffers and letters, hostile memory */
	struct event_source pipe_sources[2];
	unsigned last_words; /* how often its death has waited for them */
	bool paused;
	unsigned signals_unanswered;
	uint64_t effects;	   /* the number of the last that has been taken in */
	char set[SHA256_HEX_SIZE]; /* of packages, that a frozen one says it has; a live one says it in its buffer
				    */
};

/* Makes the descriptors. @theirs receives the interpreter's ends (channel and, for a live one,
 * stdout and stderr), the caller's to send and close; unused ones are -1. Returns 0 or -errno. */
int interpreter_new(struct interpreter **interpreterp, struct warden *warden, enum interpreter_role role,
		    uint64_t serial, int theirs[INTERPRETER_FDS]);
/* An interpreter of the last router, from the descriptors that the keeper held; it takes those that are the
 * router's. Returns 0 or -errno. */
struct interpreter_record;
int interpreter_revive(struct interpreter **interpreterp, struct warden *warden,
		       const struct interpreter_record *record, int *fds, size_t n_fds);
struct interpreter *interpreter_free(struct interpreter *interpreter);

/* Let go of it at once. Its memory lasts until the round ends: a handler of its own frames may be running. */
void interpreter_bury(struct interpreter *interpreter);
/* For the graveyard of the cages. */
void interpreter_free_dead(struct grave *grave);

/* From now on ignore everything that it says or writes. */
void interpreter_ignore(struct interpreter *interpreter);

/* Give it to a session, which gets its events from now on. Returns 0 or -errno. */
int interpreter_attach(struct interpreter *interpreter, struct tenant *tenant);

/* Sent at the end of the round. Returns 0 or -ENOMEM. A closed channel is no error here; an event tells of it. */
int interpreter_send(struct interpreter *interpreter, const struct wire_schema *schema, const void *message);

/* The same with a descriptor, which is the message's from now on, also if it fails. @subject: see peer.h. */
int interpreter_send_fd(struct interpreter *interpreter, const struct wire_schema *schema, const void *message,
			uint64_t subject, int fd);

/* Read both pipes as far as they are full now. Later output waits, so no writer can keep us here. */
void interpreter_drain(struct interpreter *interpreter);

/* After its death: read the output that it had not yet put into its pipes. */
void interpreter_salvage(struct interpreter *interpreter);

/* It is dead. Whether messages of it must be handled first, in this round or the next. */
bool interpreter_has_last_words(struct interpreter *interpreter);

/* The number of the last effect that it has noted in its buffer, or that has been taken in. */
uint64_t interpreter_noted(const struct interpreter *interpreter);

/* Whether it has done what `prepare` asks for, or says so. */
bool interpreter_is_prepared(const struct interpreter *interpreter);

/* The set of packages that it has, or says that it has; "": none. */
void interpreter_set(char set[static SHA256_HEX_SIZE], const struct interpreter *interpreter);

/* Call it before the warden is asked to interrupt @cell. */
void interpreter_mark_interrupted(struct interpreter *interpreter, uint64_t cell);

/* It has sent a message of @size bytes that nobody asked for. If that is long, it is not read for a while. */
void interpreter_rest(struct interpreter *interpreter, size_t size);

/* The last message is read again, after @us microseconds or a peer_rest. */
void interpreter_push_back(struct interpreter *interpreter, uint64_t us);
/* Stop and resume reading its output and messages, so that it blocks instead of us buffering. */
void interpreter_pause(struct interpreter *interpreter, bool paused);
