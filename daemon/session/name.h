/* How requests and answers name a session. An id belongs to a user: two users' sessions of one id are two.
 * Everybody names their own by its id. Root names another user's by the number of that user, a slash and the id,
 * and so does it one of its own whose id itself begins like that. So a name has one meaning for each who may say
 * it. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

#define SESSION_ID_MAX 128 /* bytes */
#define SESSION_NAME_SIZE (SESSION_ID_MAX + 12)

struct session_name {
	uid_t owner;
	struct bytes id; /* absent: a one-shot, or what belongs to no session */
};

enum {
	_SESSION_NAME_E_SUCCESS,
	SESSION_NAME_E_INVALID, /* no name: too long, empty, or with characters it must not have */
};

/* What @asker means by @text, which @name points into. Absent: itself, and no session. Returns 0 or
 * SESSION_NAME_E_INVALID. */
int session_name_read(struct session_name *name, struct bytes text, uid_t asker);

/* What @asker calls the session @id of @owner, into @out: what session_name_read reads as that for root, and for
 * another if it is its own. Returns @out. */
char *session_name_write(char out[static SESSION_NAME_SIZE], const char *id, uid_t owner, uid_t asker);
