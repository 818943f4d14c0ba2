/* The router: one thread that owns the clients' socket, the sessions, their timers and limits, and treats every
 * client and every interpreter as hostile. */
#pragma once

#include "breaker.h"
#include "cgroup.h"
#include "client.h"
#include "config.h"
#include "nursery.h"
#include "quota.h"
#include "saved.h"
#include "session.h"
#include "snapshot.h"
#include "vault.h"
#include "workspace.h"

struct router_stats {
	uint64_t started; /* event_now() */
	uint64_t opened, ended, cells, requests;
};

/* What a round is made of. Each has a share of it. */
enum share { SHARE_REQUESTS, SHARE_EVENTS, SHARE_TIMERS, _SHARE_N };

struct router {
	struct event_loop loop;
	struct breaker breaker;
	unsigned careful_turn; /* whose turn it is, of _SHARE_N, where a round is of one thing */
	size_t things;	       /* of how many of each kind the next round is made at most */
	struct clients clients;
	struct promises promises;
	struct saved_store saved;
	const char *config_path;
	char *socket_path;
	struct config *config;
	struct workspaces workspaces;
	struct cgroups cgroups;
	int audit_log;	    /* -1: none */
	uint64_t frame_max; /* of the socket, whatever the settings say by now */
	int listener;	    /* the socket clients connect to */
	struct event_source keeper_source, signal_source;

	struct list sessions; /* all that are not gone; those that close are no longer in the table */
	void *table;	      /* tsearch(3) of sessions, by owner and id */
	struct list nurseries, retired;
	bool any_user, several_users; /* have had a template */
	uid_t first_user;
	struct timer reserve; /* when a template for the next user is looked for */
	struct list touched;  /* wardens about whose families something may have changed in this round */
	struct snapshot snapshot;
	/* At the start: what the last router has left. */
	struct heritage heritage;
	struct list remains;
	struct list due; /* wardens and interpreters to which something is said in this round, or was heard from */
	struct graveyard dead_sessions, dead_wardens, dead_nurseries,
		dead_interpreters; /* freed between two rounds */

	uint64_t last_serial, last_transfer;
	uid_t last_uid;
	uint32_t last_template;
	struct router_stats stats;
	unsigned n_measured; /* wardens, in this round */
	bool stopping, stopped;
	bool replaced; /* by another router, which the keeper starts */
	struct timer stop_timer, beat;
	uint64_t beaten; /* when the keeper was last told that we go round */
	struct disk_watch disk;
};

/* ---- router.c ---- */

/* The whole of a router process. @config_path: NULL for the embedded default. Returns its exit status. */
int router_run(const char *config_path, const char *socket_path);
/* What was handled is written down; then what was heard is taken out of its socket, and what was said goes out. */
void router_settle(struct router *router);
/* Where much is done before the next round: tell the keeper, now and then, that we get on. */
void router_beat(struct router *router);
/* Ask the keeper for what only it can do. The first returns 0 or -errno. */
int router_start_template(struct router *router, struct nursery *nursery);
void router_remove_tree(struct router *router, const char *path);
/* The same for the workspace of a branch, which lies where its family may still write. */
void router_remove_copy(const struct warden *warden, const char *path);

/* ---- router_sessions.c ---- */

/* NULL if there is none of that owner and id. */
struct session *router_find(struct router *router, const struct session_name *name);
/* The oldest that is not closing, or NULL. */
struct session *router_first_that_stays(struct router *router);
/* Open one; @id is checked, the limits are not. "" makes a one-shot. Returns as session_new. What is opened
 * can take a cell. */
int router_open(struct session **sessionp, struct router *router, struct profile *profile, struct bytes id,
		uid_t owner);
/* Grow a new session from a checkpoint of @parent for @operation, which is answered here or when the branch stands.
 */
void router_branch(struct router *router, struct session *parent, struct checkpoint *from,
		   struct operation *operation);
/* One of the last router's. Returns 0 or -ENOMEM. */
int router_readmit(struct router *router, struct session *session);
/* As root each session runs as a uid of its own, else as laird itself: 0. Returns 0 or -EUSERS: all are taken. */
int router_take_uid(uid_t *uidp, struct router *router);
/* Its id is free again. */
void router_on_session_ended(struct router *router, struct session *session);
void router_bury_session(struct router *router, struct session *session);
void router_bury_interpreter(struct router *router, struct interpreter *interpreter);
void router_bury_warden(struct router *router, struct warden *warden);
void router_bury_nursery(struct router *router, struct nursery *nursery);
/* Prepare for the dead; free them between two rounds; and all that there is at the end. */
void router_dig_graves(struct router *router);
void router_free_dead(struct router *router);
void router_free_all(struct router *router);

/* ---- router_nurseries.c ---- */

/* The one whose template sessions of @owner grow from. NULL only when out of memory. */
struct nursery *router_nursery(struct router *router, struct profile *profile, uid_t owner);
/* One that was nobody's becomes @owner's. */
void router_own_nursery(struct router *router, struct nursery *nursery, uid_t owner);
/* A profile of new settings: have a template ahead of the first session. */
void router_warm(struct router *router, struct profile *profile);
/* From here on they make no more, see nursery_retire. */
void router_retire(struct router *router, struct nursery *nursery);
void router_retire_nurseries(struct router *router);
/* Its user has had no session for template_ttl. */
void router_on_nursery_idle(struct router *router, struct nursery *nursery);

/* ---- router_socket.c ---- */

/* Make the socket of the listener that the keeper holds. Returns 0 or -errno, having said why. */
int router_listen(struct router *router);
/* Those that waited for a client to read, if one has. */
void router_resume_sessions(struct router *router);
void router_hang_up(struct router *router);

/* ---- request.c, request_info.c ---- */

/* One message from a client. */
void router_request(struct router *router, const struct address *from, struct bytes data);
/* What info and open tell @asker of it; the record points into @name. */
struct session_info session_record(const struct session *session, uid_t asker, char name[static SESSION_NAME_SIZE]);
