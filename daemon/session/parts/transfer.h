/* Files on their way into a session, a bounded piece with each request. One that is not heard of for a minute is
 * given up, and so are all when their session goes. */
#pragma once

#include "files/files.h"
#include "proto/event.h"

#define TRANSFERS_MAX 16

struct session;

struct transfer {
	struct list node; /* in its session */
	struct session *session;
	uint64_t number;
	uid_t owner; /* of the request that began it */
	struct new_file file;
	int source; /* what is copied in, -1 if the client sends it */
	uint64_t total;
	mode_t mode;
	struct timer patience;
};

/* One of @session's, with nothing to write to yet. NULL when out of memory. */
struct transfer *transfer_new(struct session *session, uid_t owner);
/* What is not complete goes. NULL is fine; returns NULL. */
struct transfer *transfer_free(struct transfer *transfer);

/* Whether @session has as many as it may. */
bool transfers_full(const struct session *session);
/* NULL if @session has none of that number for @owner. It is heard of, then. */
struct transfer *transfer_find(struct session *session, uint64_t number, uid_t owner);
