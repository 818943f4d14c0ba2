/* A nursery: the template process of one profile and user, and the spare wardens that it has made. A session
 * gets a spare, or a warden that is still being made. */
#pragma once

#include "cgroup/share.h"
#include "warden.h"

enum nursery_state {
	NURSERY_DOWN,	  /* no template; one is started when somebody wants a warden */
	NURSERY_STARTING, /* asked of the keeper */
	NURSERY_WARMING,  /* it imports what the profile preloads */
	NURSERY_UP,
};

struct nursery {
	struct list node; /* in the router */
	struct grave grave;
	struct cages *cages;
	struct profile *profile;
	enum nursery_state state;
	struct nursery *bare; /* one without what this one still loads, for cells that can do without; or NULL */
	bool makeshift;	      /* it is such a one */
	bool held;	      /* it need not start while the other may wake from an image */
	bool imports;	      /* its template wakes from none */
	bool ahead;	      /* its template starts when it has its turn, if nobody asks before */
	bool owned;	      /* by the client user @owner, whose sessions alone it makes; else by nobody yet */
	uid_t owner;
	struct cpu_share share; /* of the processors, for its sessions */
	bool hurried;		/* the template knows that a session waits */
	bool rough;		/* it is ready for who waits, and will soon be for all */
	bool retired;		/* the profile has changed: make no more, end when the last warden has gone */
	uint32_t serial;
	int channel, theirs, pidfd;
	pid_t pid;
	uint64_t baseline; /* memory of the ready template */
	struct event_source channel_source;
	struct timer refill;
	struct timer retry; /* of what the template had no room for */
	struct timer patience;
	struct timer idle;   /* while no session may be left */
	uint64_t not_before; /* when a template that failed may be tried again */
	unsigned failures;
	unsigned deaths;      /* of templates, one after the other, that had made no warden */
	struct list wardens;  /* all of this nursery, whatever their state */
	struct list prepared; /* sets that sessions begin with: prepared.h */
	char reason[256];     /* why the last template failed */
};

int nursery_new(struct nursery **nurseryp, struct cages *cages, struct profile *profile);
struct nursery *nursery_free(struct nursery *nursery);

/* A warden for @session with @profile, the nursery's own or one that differs. For the former the template of @set
 * if that is not NULL and there is one, or a spare if there is one; else one that will be ready later. Returns 0;
 * -EAGAIN if the template failed a moment ago, or the warden cannot be made now (nursery->reason says why); or
 * -errno. */
int nursery_claim(struct nursery *nursery, struct profile *profile, const char *set, struct tenant *tenant,
		  struct warden **wardenp);
/* One that no session gets unless it asks for @set. Returns 0 or -errno. */
int nursery_order(struct nursery *nursery, const char *set, struct warden **wardenp);

/* It is that user's from now on, for good. */
void nursery_own(struct nursery *nursery, uid_t owner);
/* Before a warden of it gets a control group. */
void nursery_make_share(struct nursery *nursery);
/* Its user has no session. If that does not change, tell the router in a while. */
void nursery_idle(struct nursery *nursery);

/* Whether its template is there and not ready yet. */
bool nursery_is_starting(const struct nursery *nursery);
/* Whether it loads what the profile preloads, or will, and has not failed to before. */
bool nursery_loads(const struct nursery *nursery);
/* Whether a session has one of its wardens. */
bool nursery_is_used(const struct nursery *nursery);
/* How many wardens wait for a session. */
size_t nursery_spares(const struct nursery *nursery);

/* A timer on its behalf begins. */
void nursery_hand(const struct nursery *nursery);

/* Start the template ahead of the first claim, unless it is held. */
void nursery_warm(struct nursery *nursery);

/* Stop making wardens, and end the spares. It frees itself later if sessions still live. */
void nursery_retire(struct nursery *nursery);

/* From the keeper: the template runs, or could not be started. */
/* The types of what a template may say; NULL after the last. */
const char *nursery_message_type(size_t i);
void nursery_on_started(struct nursery *nursery, pid_t pid, int pidfd, int error);
void nursery_on_spare(struct nursery *nursery, struct warden *warden);
void nursery_on_warden_gone(struct nursery *nursery, struct warden *warden);
