/* What the files of the keeper share: its state, and the acts on it. */
#pragma once

#include "handover.h"
#include "instance.h"
#include "keeper.h"
#include "pulse.h"
#include "removal.h"
#include "throttle.h"

#include <signal.h>

/* The router gives its sessions six seconds at most, and what it says that saving them takes. */
#define STOP_LIMIT_MS 10000
/* A process that cannot be killed in that time waits in the kernel. */
#define KILL_LIMIT_MS 5000

struct keeper {
	const struct keeper_options *options;
	struct instance instance;
	char uids[UIDS_TEXT_SIZE]; /* the host users of its sessions */
	int channel;		   /* to the router */
	int signals;
	int ready;
	pid_t router;	/* 0: there is none */
	int status;	/* the exit status of the last one, as from waitpid */
	bool was_ready; /* one of them */
	bool is_ready;	/* this one */
	bool handing;	/* it does not have all of the store yet */
	bool our_own;	/* only our own build can read the store */
	bool asked_to_stop, over;
	bool short_of_descriptors;  /* said once */
	bool orphaned;		    /* there may be children that a session left behind */
	uint64_t killing_since;	    /* milliseconds, 0: there are none known */
	enum router_end killed_for; /* why we did */
	enum router_end last_end;
	sigset_t owed;		/* signals for the router, which would die of them before it is ready */
	uint64_t stop_deadline; /* milliseconds, 0: not stopping */
	uint64_t start_at;	/* when the next router starts */
	struct throttle throttle;
	struct pulse pulse;
	uint64_t told_manager; /* that we are alive */
	struct store store;
	struct handover handover;
	struct removals removals;
	char program[PATH_SIZE]; /* ourselves */
};

static inline bool keeper_stops(const struct keeper *keeper)
{
	return keeper->stop_deadline > 0;
}

/* ---- requests.c: the channel between keeper and router ---- */

int keeper_tell_router(struct keeper *keeper, const struct keeper_message *message, const int *fds, size_t n_fds);
/* Handle one message of the router. Returns 0, CHANNEL_E_EMPTY, CHANNEL_E_EOF or -errno. */
int keeper_hear(struct keeper *keeper);
/* Give a new router everything that is stored, as fast as it reads. */
void keeper_hand_over(struct keeper *keeper);

/* ---- routers.c: how they begin and end ---- */

/* Returns 0 or -errno; then it is tried again, at start_at. */
int keeper_start_router(struct keeper *keeper);
void keeper_kill_router(struct keeper *keeper, enum router_end why);
/* The order to end everything; a second one is passed on. */
void keeper_stop(struct keeper *keeper);
/* Kill a router that does not stop in time, or hangs. */
void keeper_look_after_router(struct keeper *keeper);
/* Send the signals that it is owed, as soon as it can take them. */
void keeper_pay(struct keeper *keeper);
/* Its process has ended. Its last messages are read, and it is known if another one starts, and when. */
void keeper_lost_router(struct keeper *keeper, int status);

/* ---- children.c: all other processes of the daemon ---- */

/* Wait for those that have ended. */
void keeper_reap(struct keeper *keeper);
/* Kill processes that became our children because a warden or an earlier orphan died. */
void keeper_kill_orphans(struct keeper *keeper);
/* One of the blocked signals; 0: there is none. */
int keeper_signal(struct keeper *keeper);
/* Kill all that is left, and wait until workspaces are removed. */
void keeper_end_children(struct keeper *keeper);
