/* Who may connect: the kernel says which user a connection belongs to; a connection from inside a cage is
 * refused. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

struct admission {
	pid_t keeper; /* whoever descends from it is in a cage */
	int reserve;  /* a descriptor to close a connection by when there is no other left */
};

enum {
	_ADMISSION_E_SUCCESS,
	ADMISSION_E_EMPTY,   /* nobody is waiting */
	ADMISSION_E_REFUSED, /* somebody was, and is closed */
};

void admission_init(struct admission *admission, pid_t keeper);
void admission_deinit(struct admission *admission);

/* Take the next connection. Returns 0 with @fdp and the user it belongs to, or ADMISSION_E_*; @whyp: a static
 * sentence. */
int admission_accept(struct admission *admission, int listener, int *fdp, uid_t *uidp, const char **whyp);

/* All groups that whoever connected was in; *@groupsp is the caller's to free. Returns how many, or -errno. */
int admission_groups(gid_t **groupsp, int fd);
