/* One daemon for each socket. To bind a socket would silently take it from a living daemon, so a daemon first
 * locks a file beside it. */
#pragma once

#include "proto/base.h"
#include "proto/paths.h"

#define INSTANCE_NAME_SIZE 64

struct instance {
	int lock, listener;
	uint64_t inode; /* of the socket that clients find */
	bool handed_on; /* the service manager holds the listener for the next daemon: do not remove the socket */
	bool made_directory;
	char socket[PATH_SIZE];
};

enum {
	_INSTANCE_E_SUCCESS,
	INSTANCE_E_RUNNING, /* another daemon holds it */
};

/* Make the directory of @socket if it is missing, and lock. Returns 0, INSTANCE_E_RUNNING, -EPERM for a
 * directory that cannot be trusted, or -errno. */
int instance_init(struct instance *instance, const char *socket);

/* Listen on the socket, which replaces one that an earlier daemon left there. A client that connects while
 * nobody accepts waits. The descriptor stays the instance's. Returns 0 or -errno. */
int instance_listen(struct instance *instance);
/* Let those connect whom @mode lets write, of @group if it is not -1; if these are others than us, they may pass
 * through the directory. Returns 0 or -errno. */
int instance_share(const struct instance *instance, mode_t mode, gid_t group);
/* The same with @listener, the socket of the last daemon, if clients still find it by that name: @inode is what
 * it had. Returns 0, and the descriptor is the instance's, or -errno. */
int instance_inherit(struct instance *instance, int listener, uint64_t inode);
/* The same with one that somebody else listens on for us, if it has that name: who also removes it. */
int instance_adopt(struct instance *instance, int listener);
/* From now on clients are refused. */
void instance_refuse(struct instance *instance);

/* A name that no other daemon on this host has or has had since the host started: made of @keeper's number and
 * the time it began. */
int instance_name(char name[static INSTANCE_NAME_SIZE], pid_t keeper);

/* Remove the socket, the lock and, if we made it and it is empty, the directory; unlock. */
void instance_deinit(struct instance *instance);
