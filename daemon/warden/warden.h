/* The router's handle on a warden: its control pair, its process, and the interpreter it runs. Only trusted code
 * speaks here. A warden is a spare until a session takes it. */
#pragma once

#include "base/graveyard.h"
#include "base/memory.h"
#include "base/table.h"
#include "cgroup/group.h"
#include "config/config.h"
#include "done_calls.h"
#include "interpreter.h"
#include "quota.h"
#include "tenant.h"
#include "vault/breaker.h"
#include "vault/ledger.h"

#include "proto/sha256.h"

#include <sys/types.h>

struct nursery;
struct cages;

/* The files that there are before anything has run: a warden keeps these by itself. */
#define FILES_FIRST 1
#define WARDEN_LANGUAGE_SIZE 16

enum warden_state {
	WARDEN_WANTED, /* its template is not up yet */
	WARDEN_MAKING, /* asked for */
	WARDEN_CAGING, /* it exists and builds its cage */
	WARDEN_READY,  /* its interpreter waits */
	WARDEN_DYING,  /* killed, not yet gone */
};

struct warden {
	struct list node; /* in its nursery */
	struct grave grave;
	struct list touched; /* in the cages, in a round that changes something about it */
	uint64_t family;     /* its number for the keeper */
	struct ledger ledger;
	bool stored;   /* the keeper has its descriptors */
	bool unkept;   /* the last commit has failed */
	uint64_t took; /* microseconds, the last commit */
	bool kill_due; /* as soon as that is written down */
	struct cages *cages;
	struct nursery *nursery;
	struct profile
		*profile;    /* of its sessions: the nursery's, or one that differs from it, see config/asked.h */
	struct party *party; /* of its tenants; NULL: it has had none */
	enum warden_state state;
	uint64_t serial;
	uid_t uid;		  /* 0: laird's own */
	struct table_node by_uid; /* in the cages, until it is gone */
	pid_t pid;
	struct peer peer;  /* its control pair */
	int theirs, pidfd; /* theirs: the warden's end, until it is sent */
	struct event_source pidfd_source;
	struct timer patience; /* for each step of its making */
	uint64_t baseline;     /* memory of the image it is a clone of */
	char *workspace;       /* absolute path */
	struct group group;    /* named like the workspace; there is one from when a template was asked for it */
	int directory;	       /* the same, O_PATH, from before anybody could write to it */
	enum workspace_policy keep;
	struct quota quota;
	char *level;
	char language[WARDEN_LANGUAGE_SIZE], version[WARDEN_LANGUAGE_SIZE]; /* "": not known */
	msgpack_sbuffer guards;						    /* array of str */
	struct list tenants; /* a session and its branches; empty: a spare */
	struct done_calls done_calls;
	bool used;		   /* a session has had it */
	bool importing;		   /* it does so now */
	char set[SHA256_HEX_SIZE]; /* what a spare imports ahead, see prepared.h; "": nothing */
	struct list interpreters;
	uint64_t last_interpreter, last_session, last_question, last_files;
	struct usage usage;		    /* as it was then */
	uint64_t measured;		    /* event_now(); 0: not since something has changed much */
	uint64_t profile_size, record_size; /* in the ledger: what never changes, and its last record */
	bool starved;			    /* it died because memory ran out */
	bool sweeping;			    /* a `sweep` is unanswered */
	char reason[256];		    /* why it could not be made */
};

/* A new warden in the state WANTED, with its workspace. Returns 0 or -errno. */
int warden_new(struct warden **wardenp, struct cages *cages, struct nursery *nursery, struct profile *profile);
struct warden *warden_free(struct warden *warden);
/* A warden of the last router. @fds: the descriptors that the keeper held of it, which are taken; NULL if it had
 * not been ready, and must be made again. Returns 0 or -errno. */
struct family_record;
int warden_revive(struct warden **wardenp, struct cages *cages, struct nursery *nursery, uint64_t family,
		  const struct family_record *record, int *fds);

/* The message that asks a template for it, and the template's answers. */
int warden_request(struct warden *warden, int template_channel);
void warden_made(struct warden *warden, pid_t pid, int pidfd);
void warden_failed(struct warden *warden, struct bytes reason);
/* The text for a client that tells why a warden or a template could not be made. It has no paths of the host;
 * these are for the operator, in the log. */
const char *reason_told(const char *reason);
/* The template died before it made it (MAKING): back to WANTED, for the next template. */
void warden_want_again(struct warden *warden);

/* From now on @party pays for it. */
void warden_own(struct warden *warden, struct party *party);
/* A session takes it, or joins the sessions that have it. */
void warden_join(struct warden *warden, struct tenant *tenant);
/* A session gives it up. The last one ends the warden. Otherwise the session's interpreters are killed, and its
 * on_swept is called when nothing of them is left. */
void warden_leave(struct warden *warden, struct tenant *tenant);

/* Something of it or its sessions may have changed: write it down when the round is settled. */
void warden_touch(struct warden *warden);

/* The interpreter of a READY warden that waits for its first session. */
struct interpreter *warden_first(struct warden *warden);
/* The id of one of its sessions; absent for a spare. */
struct bytes warden_session(const struct warden *warden);

/* Three ways to get an interpreter: from the pristine image, which works in @workspace, a branch's, if that is
 * not NULL; a frozen copy of @live, in the middle of @cell, which is loose then, or, if that is 0, between two
 * cells; a fork of @frozen. The last two are in flight until they are adopted. Return 0 or -errno. */
int warden_spawn(struct warden *warden, const char *workspace, struct interpreter **interpreterp);
int warden_freeze(struct warden *warden, struct interpreter *live, uint64_t cell, struct interpreter **frozenp);
int warden_thaw(struct warden *warden, struct interpreter *frozen, const struct spawn_message *how,
		struct interpreter **interpreterp);

/* The fork says it has the number @pid: tell the warden, which checks. Returns 0 or -errno. */
int warden_adopt(struct warden *warden, struct interpreter *interpreter, uint64_t pid);

/* Signal the interpreter; 9 kills it. The answer reduces its signals_unanswered. */
int warden_signal(struct warden *warden, struct interpreter *interpreter, int signal);

/* NULL if there is none of that number. */
struct interpreter *warden_interpreter(const struct warden *warden, uint64_t serial);

/* Kill an interpreter that nobody needs any more, and close our end of it; or leave it to a session that is
 * still being forked from it. Returns NULL. */
struct interpreter *warden_discard(struct warden *warden, struct interpreter *interpreter);

/* A handler on its behalf begins. */
void blame_warden(const struct warden *warden, enum blame_turn turn);

/* Kill everything that belongs to no known interpreter, once none is in flight; then call the tenant's on_swept. */
void warden_sweep(struct warden *warden, struct tenant *tenant);

/* Have the workspace added up, to no more than that; then quota_on_surveyed is called. */
void warden_survey(struct warden *warden, uint64_t size, uint64_t files);

/* Keep the files as they are now, in the workspace or in @directory, a branch's: at most @max bytes of contents.
 * @mapped: an array of inodes. Then on_files_kept is called, with the number that is returned; 0: it does not
 * listen.
 */
uint64_t warden_keep_files(struct warden *warden, const char *directory, uint64_t max, struct bytes mapped);
/* Bring those of that number back; then on_files_back is called. No interpreter of @tenant alone
 * runs meanwhile. Returns 0 or -errno. */
int warden_bring_files(struct warden *warden, const struct tenant *tenant, const char *directory, uint64_t number);
/* Give that up: on_files_back is called soon, and says how far it got. */
void warden_leave_files(struct warden *warden, const char *directory, uint64_t number);
/* How the files of those two numbers differ; then on_files_compared is called, with the number that is returned; 0:
 * it does not listen. */
uint64_t warden_compare_files(struct warden *warden, uint64_t since, uint64_t until);
/* A number that nothing else in the family has. */
uint64_t warden_next_number(struct warden *warden);
/* Nobody will go back to them. */
void warden_drop_files(struct warden *warden, uint64_t number);

/* Kill it and with it everything in its cage; on_gone, or the nursery's function, is called when it is gone. */
void warden_kill(struct warden *warden);
/* For families_settle. */
void warden_kill_now(struct warden *warden);

/* ---- between warden.c and messages.c ---- */

/* A message has come from it, or there is room to send one. */
void warden_on_control(struct event_source *source, uint32_t events);
/* The types of what it may say; NULL after the last. */
const char *warden_message_type(size_t i);
/* Nothing of it runs any more. */
void warden_gone(struct warden *warden);
/* Send the sweep that a session waits for, if it can be done now. */
void warden_sweep_try(struct warden *warden);
