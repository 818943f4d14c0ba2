/* One daemon a socket: binding would silently take it from a living one, so a lock beside it is held first. */
#pragma once

#include "proto/base.h"
#include "proto/paths.h"

#define INSTANCE_NAME_SIZE 64

struct instance {
	int lock, listener;
	uint64_t inode; /* of the socket, where clients find it */
	bool handed_on; /* somebody holds the listener for the next daemon: the socket stays where it is */
	bool made_directory;
	char socket[PATH_SIZE];
};

enum {
	_INSTANCE_E_SUCCESS,
	INSTANCE_E_RUNNING, /* another daemon holds it */
};

/* Make the directory of @socket if need be and lock. Returns 0, INSTANCE_E_RUNNING, -EPERM for a directory that
 * cannot be trusted, or -errno. */
int instance_init(struct instance *instance, const char *socket);

/* Listen on the socket, which takes the place of what an earlier life left there. A client that connects while
 * nobody accepts waits. The descriptor stays the instance's. Returns 0 or -errno. */
int instance_listen(struct instance *instance);
/* The same with what the last daemon listened on, if its clients still find it by that name: @inode is what it had.
 * Returns 0, and the descriptor is the instance's, or -errno. */
int instance_inherit(struct instance *instance, int listener, uint64_t inode);
/* From now on clients are refused. */
void instance_refuse(struct instance *instance);

/* A name that no other daemon has or has had on this host since it started: made of @keeper's number and the time
 * it began. */
int instance_name(char name[static INSTANCE_NAME_SIZE], pid_t keeper);

/* Remove the socket, the lock and, if we made it and it is empty, the directory; unlock. */
void instance_deinit(struct instance *instance);
