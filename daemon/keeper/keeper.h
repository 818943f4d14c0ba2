/* The keeper: parent of everything, libc only. It starts the router, and another one when that dies. It starts
 * templates when the router asks; wardens become its children by CLONE_PARENT. It holds the
 * listening socket and the descriptors that a router wants the next one to have. It reaps dead children, passes
 * signals on, and when it ends, everything ends.
 *
 * Keeper and router are one program, so their messages are fixed structs over a SOCK_SEQPACKET pair. The router
 * may be of a later build: fields keep their places, and operations their numbers. */
#pragma once

#include "store.h"
#include "uids.h"

/* The router finds its end of the pair here. */
#define KEEPER_FD 3

enum keeper_op {
	KEEPER_START_TEMPLATE = 1, /* router to keeper: @profile, behind its NUL the language, if it is not Python;
				    * @name.number: program_path's @python; one descriptor: the template's end of
				    * its channel. A keeper that knows no languages starts Python, which the router
				    * refuses */
	KEEPER_STARTED,	    /* keeper to router; pid or error; one descriptor: the pidfd, if the kernel has them */
	KEEPER_READY,	    /* router to keeper: the socket is bound; notify the waiting process */
	KEEPER_REMOVE_TREE, /* router to keeper: delete @path in a child of its own (workspace_remove_tree), since a
			       large tree takes long; no answer. The keeper ends only after these children. With a
			       descriptor: delete the last component of @path in that directory */
	KEEPER_STORE,  /* router to keeper: keep these descriptors under @name, and replace older ones of that name;
			  @serial not 0: for the next keeper as well */
	KEEPER_FORGET, /* router to keeper: close the descriptors of @name; kind 0: all of the family */
	KEEPER_HELD,   /* keeper to router, at its start: one item that it holds */
	KEEPER_END,    /* keeper to router: that was all; @error: how the last router ended, a router_end */
	KEEPER_BEAT,   /* router to keeper, every PULSE_BEAT_MS: its loop turns */
	KEEPER_START_BUILDER = 11, /* router to keeper; one descriptor: the builder's end of its channel; no answer:
				    * it ends when the channel does */
	KEEPER_START_COPIER,	   /* the same for a copier, see files/copier.h */
};

enum router_end {
	ROUTER_END_WELL,  /* there was none, it was told to end, or another process killed it */
	ROUTER_END_DIED,  /* it died by itself */
	ROUTER_END_STOOD, /* it hung, and was killed */
};

struct keeper_message {
	uint32_t op;
	uint32_t serial; /* chosen by the router, echoed */
	int32_t pid;
	int32_t error; /* -errno, 0 = well */
	struct store_name name;
	char profile[64];
	char path[1024]; /* not sent if the operation has none */
};

/* Kinds that the keeper itself makes have numbers from here. */
#define STORE_LISTENER 1000

/* Exit status of a router: replace it at once, by the build that is installed now. */
#define ROUTER_EXIT_REPLACE 75
/* Exit status of a router: the last one has stored things in another layout than its own. */
#define ROUTER_EXIT_LAYOUT 76

struct keeper_options {
	const char *config; /* absolute path, or NULL for the embedded default */
	const char *socket; /* absolute path */
	mode_t socket_mode;
	gid_t socket_group;   /* -1: ours */
	struct uids uids;     /* that sessions get if we are root; 0: any */
	const char *log;      /* path, or NULL for stderr */
	int ready_fd;	      /* -1, or the descriptor that gets one byte once the socket answers */
	bool restart_at_once; /* replace a router that was ready at once, however often it dies: for tests that kill
				 it */
};

/* How many bytes of a message with this operation are sent. */
size_t keeper_message_size(enum keeper_op op);

/* Run until told to stop. Returns the exit status of the process: the router's own, 128 and the signal that killed
 * it, if it never got ready, or 3 if another daemon holds the socket. */
int keeper_run(const struct keeper_options *options);
