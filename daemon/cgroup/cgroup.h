/* Control groups: the one way to limit what a session uses as a whole, however many processes it consists of. A
 * laird that may make them has one directory of its own in each hierarchy, beneath the group it was started in, so
 * that limits on the daemon go on holding for it and its sessions together:
 *
 *	<where laird was started>/lair-<hash of its socket>/<share>/<a warden's workspace>	see group.h, share.h
 *	                                                    daemon	laird and its templates (version 2)
 *
 * Which controllers there are is found out by using them. */
#pragma once

#include "home.h"
#include "proto/event.h"

struct hierarchy {
	unsigned version;
	char *path; /* our directory in it */
	int fd;
	unsigned controllers; /* bits of those that hold here */
};

struct cgroups {
	struct hierarchy hierarchies[_CONTROLLER_N];
	size_t n;
	char lacking[_CONTROLLER_N][256]; /* why there is no such controller; "" if there is */
	struct event_loop *loop;
	struct list leftovers; /* groups that could not be removed yet */
	uint64_t last_share;
	struct timer retry;
};

/* Find out which controllers the daemon of @socket may use, and move it where version 2 wants it. @loop: NULL if
 * no group will be dropped. Never fails: lacking says why a controller is missing. Takes some 20 ms. */
void cgroups_open(struct cgroups *cgroups, const char *socket, struct event_loop *loop);
/* Closes descriptors; the directories stay. */
void cgroups_close(struct cgroups *cgroups);

/* The hierarchy that has the controller, or NULL. */
const struct hierarchy *cgroups_find(const struct cgroups *cgroups, enum controller controller);

/* Take over the groups of a former router. Remove each as soon as nobody is in it. */
void cgroups_adopt(struct cgroups *cgroups);
/* Remove the group @name. If processes in it must die first, they get SIGKILL, and it is removed soon. */
void cgroups_drop(struct cgroups *cgroups, const char *name);

/* Undo everything, for the daemon of @socket: kill the processes in its groups, remove groups and directories,
 * put its own processes back where they were. Called when laird ends; and when it begins, in case an earlier one
 * could not. */
void cgroups_erase(const char *socket);
