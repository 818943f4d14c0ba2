/* The policy of this template, for the audit hook and everything else that explains refusals. */
#pragma once

#include "cage/places.h"

#include <limits.h>

#define NAMESERVER_PORT 53

struct policy {
	bool armed; /* there is a cage: what the policy does not grant is refused */
	bool tree;  /* a file system of its own: the directories above a place exist, and hold only the way to it */
	bool subprocess, network, network_tcp;
	const char *no_terminals; /* the reason; NULL: there are some */
	uint64_t memory;	  /* of one process, in bytes; 0: no limit */
	uint64_t ports[32];
	size_t n_ports;
	struct places places;
};

extern struct policy policy; /* policy.c alone changes it */

/* Whether connections to this port are granted. Only with network_tcp. */
bool policy_port(uint64_t port);

/* In the template, once: directories, network, subprocess. @language_dirs as in cage_prepare. Returns 0 or -errno.
 */
int policy_configure(const struct configure_message *configure, char *const language_dirs[]);

/* In the warden of a session that has other places and another limit. Returns 0 or -errno. */
int policy_differ(const struct configure_message *configure, char *const language_dirs[]);

/* In the warden, once the cage is complete. @workspace becomes a writable place beside the profile's. @tree: the
 * session has a file system of its own. @terminals: it has terminals, if the profile grants them. */
int policy_arm(const char *workspace, bool tree, bool terminals);

enum want {
	WANT_ENTER, /* make it the working directory */
	WANT_READ,
	WANT_CHANGE
};

/* Why @path may not be read or changed; NULL if it may be, or if we cannot be sure. Static. */
const char *policy_path_reason(struct bytes path, enum want want);
enum target {
	TARGET_THERE, /* must exist */
	TARGET_NEW,   /* will be made, and must not exist yet */
	TARGET_ANY    /* will be made, and may exist */
};

/* The error that a plain Python gives for @path because it exists or does not: ENOENT, ENOTDIR, EEXIST. 0 if
 * there is none, or if any part of the way lies where the session may not read. So it never tells whether
 * something outside exists. */
int policy_path_error(struct bytes path, enum target target);
/* Whether others than the session see what is written at @path: it lies in a place that the profile lets sessions
 * write to, and not in the workspace. @path is absolute and without links. policy_writes_outside says whether there
 * is any such place. */
bool policy_path_outside(const char *path);
bool policy_writes_outside(void);
/* Whether @path lies among files that the profile grants, where modes and owners count, too, and not among the
 * kernel's own files. */
bool policy_path_granted(struct bytes path);
