/* The router: one thread that owns the clients' socket, the sessions, their timers and limits, and treats every
 * client and every interpreter as hostile. */
#pragma once

#include "config/config.h"
#include "family/family.h"
#include "files/saved.h"
#include "packages/builds.h"
#include "promise/client.h"
#include "session/life/life.h"
#include "vault/breaker.h"
#include "vault/vault.h"
#include "warden/cages.h"
#include "warden/nursery.h"

/* The parts of a round. Each has a share of its time. */
enum share { SHARE_REQUESTS, SHARE_EVENTS, SHARE_TIMERS, _SHARE_N };

struct router {
	struct event_loop loop;
	struct breaker breaker;
	unsigned careful_turn; /* whose turn it is, of _SHARE_N, where a round is of one thing */
	struct cages cages;
	struct users users;
	struct sessions sessions;
	struct clients clients;
	struct promises promises;
	struct saved_store saved;
	struct builds builds;
	const char *config_path;
	char *socket_path;
	struct config *config;
	int listener; /* the socket clients connect to */
	struct event_source keeper_source, signal_source;

	struct families families;
	struct vault vault; /* what the last router has left */

	bool stopped;
	bool replaced;		 /* by another router, which the keeper starts */
	bool grace_over, ending; /* of a stop: cells have had their time; saving is over */
	uint64_t stop_until;	 /* when it is, in any case */
	struct timer stop_timer, beat;
};

/* ---- router.c ---- */

/* The whole of a router process. @config_path: NULL for the embedded default. Returns its exit status. */
int router_run(const char *config_path, const char *socket_path, const char *uids);

/* ---- settings.c ---- */

/* Those of the last router, if there are any, else what the file has. Returns 0 or -errno, having said why. */
int settings_begin(struct router *router);
/* For those that a router begins with: the audit log is opened, and settings_prepare. Returns 0, or another value
 * with @error. */
int settings_start(struct router *router, struct config_error *error);
/* All that can fail of it, before anything changes. From here on the next router has these settings, too. Returns
 * 0, or -errno with @error. */
int settings_prepare(struct router *router, struct config *config, struct config_error *error);
/* Apply prepared settings. */
void settings_use(struct router *router, struct config *config);

/* ---- reload.c ---- */

/* Requests to read the settings anew come here from now on. */
void reload_init(struct router *router);
/* Read them anew; if anything is wrong, nothing changes, and the log says why. @asker: NULL, or the request that is
 * answered. */
void reload(struct router *router, const struct address *asker);
