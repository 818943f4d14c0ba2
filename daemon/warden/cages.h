/* Everything that cages share: wardens and templates, the dead ones among them, and the settings they are made
 * from. */
#pragma once

#include "base/graveyard.h"
#include "base/table.h"
#include "cgroup/cgroup.h"
#include "config/config.h"
#include "keeper/uids.h"
#include "keeper/workspace.h"
#include "quota.h"

struct breaker;
struct interpreter;
struct nursery;
struct warden;

struct cages {
	struct event_loop *loop;
	struct breaker *breaker;
	const struct config *config; /* the settings in force */
	int images;		     /* the directory for images of templates; -1: none are kept */
	struct workspaces workspaces;
	struct cgroups cgroups;
	struct list nurseries, retired;
	struct list due;     /* wardens and interpreters that were heard or get a message in this round */
	struct list touched; /* wardens about whose families something may have changed in this round */
	uint64_t owed;	     /* how many microseconds it will take to write these down */
	struct graveyard dead_nurseries, dead_wardens, dead_interpreters; /* freed between two rounds */
	struct disk_watch disk;
	unsigned n_measured; /* wardens, in this round */
	uint64_t last_serial;
	struct table uids; /* wardens by theirs */
	struct uids uids_given;
	uid_t last_uid;
	uint32_t last_template;
	bool any_user, several_users; /* have had a template */
	bool stopping;		      /* laird is: nothing new begins */
	uid_t first_user;
	struct timer reserve; /* when a template for the next user is looked for */
	struct timer ahead;   /* when the next template may start that nobody has asked for */
};

void cages_init(struct cages *cages, struct event_loop *loop, struct breaker *breaker);
/* When all of it is buried and freed. */
void cages_deinit(struct cages *cages);

/* The nursery whose template makes the sessions of @owner. NULL only when out of memory. */
struct nursery *cages_nursery(struct cages *cages, struct profile *profile, uid_t owner);
/* The same for a session that begins with @code, absent: nobody knows with what. While the template still loads
 * what the profile preloads, if it is there, code that names nothing of it need not wait for that. */
struct nursery *cages_nursery_for(struct cages *cages, struct profile *profile, uid_t owner, struct bytes code);
/* A nursery that belonged to nobody is @owner's from now on. */
void cages_own_nursery(struct cages *cages, struct nursery *nursery, uid_t owner);
/* Templates of @owner have come: the shares of the processors that they have are as much as one. */
void cages_divide(struct cages *cages, uid_t owner);
/* A profile of new settings: start a template before the first session comes, when it has its turn. */
void cages_warm(struct cages *cages, struct profile *profile);
/* A template has loaded what it preloads, or never will: the next one has its turn. */
void cages_on_loaded(struct cages *cages);
/* Retired nurseries make no more wardens, see nursery_retire. */
void cages_retire(struct cages *cages, struct nursery *nursery);
void cages_retire_all(struct cages *cages);
/* The user of this nursery has had no session for template_ttl. */
void cages_on_nursery_idle(struct cages *cages, struct nursery *nursery);

/* Whether a session has any of the wardens. */
bool cages_used(const struct cages *cages);

/* If laird is root, each session runs as a uid of its own; else as laird itself: 0. Returns 0 or -EUSERS: all
 * are taken. */
int cages_take_uid(uid_t *uidp, struct cages *cages);
/* If laird is root, builders of packages run as a uid that no session gets; else as laird itself: 0. */
uid_t cages_builder_uid(const struct cages *cages);

/* Nothing refers to it but others of the dead. It is freed between two rounds, so a handler may end anything:
 * interpreters before the sessions that they refer to, wardens after them. */
void cages_bury_warden(struct cages *cages, struct warden *warden);
void cages_bury_nursery(struct cages *cages, struct nursery *nursery);
/* At the end: bury whatever there is. */
void cages_bury_all(struct cages *cages);
