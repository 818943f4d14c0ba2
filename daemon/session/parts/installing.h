/* Packages that a running cell asks for: it calls a function of that name, which is no client's. The call is held
 * until the set is there, and so the cell's time stands still. A build knows nobody who waits: when it ends, all
 * calls of its key are answered. */
#pragma once

#include "session/core/session.h"

struct sessions;

/* Which set a session has when its first cell begins, if that is there already: what its profile and its client
 * want, and what its code declares. */
bool session_first_set(char set[static SHA256_HEX_SIZE], struct sessions *sessions, const struct profile *profile,
		       const struct beginning *with);

/* The running cell asks. */
void session_install(struct session *session, const struct call_message *message);
/* Somebody has approved it. */
void session_install_approved(struct session *session, struct call *call);

/* For packages/builds.h: answer all who wait for @key. */
void sessions_installed(struct sessions *sessions, const char *key, const char *set, const char *reason);
/* The same: tell them what is being done. */
void sessions_install_told(struct sessions *sessions, const char *key);
