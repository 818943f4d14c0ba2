/* All sessions, by owner and id, and what they share. What has died is freed only between two rounds of the loop,
 * so a handler may end anything. */
#pragma once

#include "audit_log.h"
#include "config/config.h"
#include "events.h"
#include "files/saved.h"
#include "past.h"
#include "promise/client.h"
#include "promise/promise.h"
#include "session.h"
#include "warden/cages.h"
#include "watches.h"

/* How many took how long. */
#define TIMES_MAX 18
struct times {
	uint64_t n[TIMES_MAX], sum; /* sum: microseconds */
};

struct stats {
	uint64_t started; /* event_now() */
	/* Since the keeper started. */
	uint64_t opened, ended, cells, requests, refused;
	uint64_t timed_out, out_of_memory, crashed; /* cells, by how they came to their end */
	uint64_t rolled_back;			    /* interpreters that were lost, so that a session went back */
	uint64_t audit_missed, audit_told;	    /* lines, in all; those of them that the log has a line about */
	struct times ran, waited;		    /* of cells */
};

/* What comes of laird's stop: stop.h. */
struct stop {
	struct list askers;	  /* who is told what came of it */
	uint64_t n_saved, n_left; /* sessions; that are still to be saved */
	size_t n_not_saved;
	msgpack_sbuffer not_saved; /* names, and why */
};

struct builds;
struct part;

struct sessions {
	/* What lies above: what the table of states does, how a warden tells a session, and the parts. */
	void (*on_event)(struct session *session, enum session_event event, const struct details *details);
	const struct tenant_ops *tenant_ops;
	const struct part *const *parts; /* in the order in which they are initialised; NULL after the last */
	struct event_loop *loop;
	struct breaker *breaker;
	struct users *users;
	struct clients *clients;
	struct promises *promises;
	struct cages *cages;
	struct saved_store *saved;
	struct builds *builds;
	const struct config *config; /* the settings in force */
	/* The router's: read them anew, and answer the client. */
	void (*reload)(struct sessions *sessions, const struct address *from);
	struct audit_log audit_log;
	struct past past;
	struct stop stop;
	struct watches watches;
	struct list all; /* that are not gone; those that close are no longer in the table */
	size_t n;
	void *table; /* tsearch(3), by owner and id */
	struct graveyard dead;
	uint64_t last_transfer;
	struct stats stats;
	struct stats *kept;	 /* for the next router, see counters.h; NULL: nowhere */
	uint64_t refused_before; /* by the routers before this one */
};

void sessions_init(struct sessions *sessions);

/* NULL if there is none of that owner and id. */
struct session *sessions_find(struct sessions *sessions, const struct session_name *name);
/* Of the sessions that @uid may name, which are all for root, the oldest, or the one after @session; or NULL. */
struct session *sessions_next(const struct sessions *sessions, uid_t uid, const struct session *session);
/* Before a list of them: measure a few of those that @uid may name, the ones measured longest ago. */
void sessions_measure(const struct sessions *sessions, uid_t uid);
/* The oldest that is not closing, or NULL. */
struct session *sessions_first_open(struct sessions *sessions);
/* Whether @owner may have one more, or else @from has been told why not. */
bool sessions_room(struct sessions *sessions, const struct address *from, uid_t owner);
/* It can be found from now on. Returns 0 or -ENOMEM. */
int sessions_admit(struct sessions *sessions, struct session *session);
/* One of the last router's. Returns 0 or -ENOMEM. */
int sessions_readmit(struct sessions *sessions, struct session *session);
/* Its id is free again. */
void sessions_on_ended(struct sessions *sessions, struct session *session);
void sessions_bury(struct sessions *sessions, struct session *session);
/* All that the last router has left are there: whoever is not has ended. */
void sessions_settle_past(struct sessions *sessions);
/* At the end: bury all that there are. */
void sessions_bury_all(struct sessions *sessions);
