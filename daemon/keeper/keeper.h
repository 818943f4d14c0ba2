/* The keeper: parent of everything, libc only. It starts the router, another one when that dies, and templates and
 * scribes when the router asks; wardens become its children by CLONE_PARENT. It holds the listening socket and what
 * a router wants the next one to have, reaps what dies, passes signals on, and ends everything with itself.
 *
 * Keeper and router are one program, so what they say to each other is fixed structs over a SOCK_SEQPACKET pair.
 * The router may be of a later build: fields keep their places, and operations their numbers.
 */
#pragma once

#include "store.h"

/* The router finds its end of the pair here. */
#define KEEPER_FD 3

enum keeper_op {
	KEEPER_START_TEMPLATE = 1, /* router to keeper; one descriptor: the template's end of its channel */
	KEEPER_STARTED,	     /* keeper to router; pid or error; one descriptor: the pidfd, where there are any */
	KEEPER_READY,	     /* router to keeper: the socket is bound; tell whoever waits */
	KEEPER_REMOVE_TREE,  /* router to keeper: delete @path in a child of its own (workspace_remove_tree), since
			      * a large tree takes long; no answer. The keeper ends only after these children. With
			      * a descriptor: what has the last component of @path for its name in there */
	KEEPER_STORE,	     /* router to keeper: keep these descriptors under @name, instead of what has it;
			      * @serial not 0: for the next keeper as well */
	KEEPER_FORGET,	     /* router to keeper: close what has @name; kind 0: the whole family's */
	KEEPER_HELD,	     /* keeper to router, at its start: one thing that it holds */
	KEEPER_END,	     /* keeper to router: that was all; @error: how the last router ended, a router_end */
	KEEPER_BEAT,	     /* router to keeper, every PULSE_BEAT_MS: it still goes round */
	KEEPER_START_SCRIBE, /* router to keeper; three descriptors, see audit/scribe.h: start a scribe with them,
			      * and another one whenever it dies, until one has come to its end; no answer */
};

enum router_end {
	ROUTER_END_WELL,  /* there was none, it was asked to, or somebody else killed it */
	ROUTER_END_DIED,  /* of itself */
	ROUTER_END_STOOD, /* still, for which it was killed */
};

struct keeper_message {
	uint32_t op;
	uint32_t serial; /* chosen by the router, echoed */
	int32_t pid;
	int32_t error; /* -errno, 0 = well */
	struct store_name name;
	char profile[64];
	char path[1024]; /* left out where there is none */
};

/* Kinds that the keeper itself makes have numbers from here. */
#define STORE_LISTENER 1000

/* What a router exits with to be replaced at once, by what the executable's name stands for now. */
#define ROUTER_EXIT_REPLACE 75
/* Or because what the last one has stored is of another layout than its own. */
#define ROUTER_EXIT_LAYOUT 76

struct keeper_options {
	const char *config;   /* absolute path, or NULL for the embedded default */
	const char *socket;   /* absolute path */
	const char *log;      /* path, or NULL for stderr */
	int ready_fd;	      /* -1, or where to write one byte once the socket answers */
	bool restart_at_once; /* a router that was ready, however often it dies: for tests that kill it */
};

/* How much of a message with this operation travels. */
size_t keeper_message_size(enum keeper_op op);

/* Run until told to stop. Returns the exit status of the process: the router's own, 128 and the signal that killed
 * it, if it never got ready, or 3 if another daemon holds the socket. */
int keeper_run(const struct keeper_options *options);
