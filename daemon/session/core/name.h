/* The name of a session in requests and answers. An id belongs to a user: two users' sessions of one id are two.
 * A user names the own sessions by their ids. Root names another user's by the number of that user, a slash and
 * the id. Root names one of its own in the same way if the id itself begins like that. So a name has one meaning
 * for each user. */
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

/* What @asker means by @text; @name points into it. Absent: the asker, and no session. Returns 0 or
 * SESSION_NAME_E_INVALID. */
int session_name_read(struct session_name *name, struct bytes text, uid_t asker);

/* The name of the session @id of @owner for @asker, into @out: for root, or the owner, session_name_read gives
 * the same session back. Returns @out. */
char *session_name_write(char out[static SESSION_NAME_SIZE], const char *id, uid_t owner, uid_t asker);
