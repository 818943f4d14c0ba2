/* Clients that wait until the calls that they may see have changed: a call has come, is answered, or is in another
 * state. They ask which there are afterwards. */
#pragma once

#include "proto/event.h"
#include "proto/list.h"

struct address;
struct session;
struct sessions;

struct watches {
	struct list all;
	uint64_t base;	  /* so that the turns of two routers differ */
	uint64_t changed; /* how often, for all users together */
	struct timer due; /* when somebody is answered */
};

void watches_init(struct watches *watches);
void watches_deinit(struct sessions *sessions);
/* Tell @from when the turn is not @seen, which it is not if that is 0; at the latest in so many seconds. */
void watches_add(struct sessions *sessions, const struct address *from, uint64_t seen, double seconds);
/* The calls of @session have changed. */
void watches_note(struct session *session);
