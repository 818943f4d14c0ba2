/* The keeper: parent of everything, libc only. It starts the router and, when the router asks, templates; wardens
 * become its children by CLONE_PARENT. It reaps what dies, passes signals on, and ends everything with itself.
 *
 * Keeper and router are one executable, so what they say to each other is fixed structs over a SOCK_SEQPACKET pair.
 */
#pragma once

#include "proto/base.h"

/* The router finds its end of the pair here. */
#define KEEPER_FD 3

enum keeper_op {
	KEEPER_START_TEMPLATE = 1, /* router to keeper; one descriptor: the template's end of its channel */
	KEEPER_STARTED,	    /* keeper to router; pid or error; one descriptor: the pidfd, where there are any */
	KEEPER_READY,	    /* router to keeper: the socket is bound; tell whoever waits */
	KEEPER_REMOVE_TREE, /* router to keeper: delete @path in a child of its own (workspace_remove_tree), since
			     * a large tree takes long; no answer. The keeper ends only after these children */
};

struct keeper_message {
	uint32_t op;
	uint32_t serial; /* chosen by the router, echoed */
	int32_t pid;
	int32_t error; /* -errno, 0 = well */
	char profile[64];
	char path[1024];
};

struct keeper_options {
	const char *config; /* absolute path, or NULL for the embedded default */
	const char *socket; /* absolute path */
	const char *log;    /* path, or NULL for stderr */
	int ready_fd;	    /* -1, or where to write one byte once the socket answers */
};

/* Run until told to stop. Returns the exit status of the process: the router's own, 128 and the signal that killed
 * it, or 3 if another daemon holds the socket. */
int keeper_run(const struct keeper_options *options);
