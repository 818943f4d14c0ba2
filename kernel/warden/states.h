/* The files of the states of a session and its branches, which the warden keeps and brings back as the router says.
 * It does so piece by piece, one order after the other, and listens in between. */
#pragma once

#include "files/capture.h"
#include "files/revert.h"

#include "proto/message.h"

struct kept_state;
struct place;
struct job;

/* What it says when an order is done. */
struct states_listener {
	void (*on_kept)(void *userdata, const struct files_kept_message *kept);
	void (*on_back)(void *userdata, const struct files_back_message *back);
	void (*on_going)(void *userdata, const struct files_going_message *going);
	/* Whether the interpreters of these serials stand still, asked until it is so; and they may run again. */
	bool (*stop)(void *userdata, struct bytes serials);
	void (*resume)(void *userdata, struct bytes serials);
	void (*on_compared)(void *userdata, const struct files_compared_message *compared);
};

struct states {
	struct store store;
	int home;		 /* the workspace */
	struct kept_state *kept; /* newest first */
	struct place *places;
	struct job *jobs; /* the first one is under way */
	uint64_t lost;	  /* states up to this one may be gone */
	uint64_t said;	  /* when it was said last that something gets further, in ms */
	const struct states_listener *listener;
	void *userdata;
};

/* The working directory is the workspace. What is there is the state number 1. */
void states_init(struct states *states, const struct states_listener *listener, void *userdata);
/* In a fork, which must not have the descriptors. */
void states_leave(struct states *states);
void states_keep(struct states *states, const struct keep_files_message *keep);
void states_bring(struct states *states, const struct bring_files_message *bring);
void states_give_up(struct states *states, const struct leave_files_message *leave);
/* At once: both states are there, or are not. */
void states_compare(struct states *states, const struct compare_files_message *compare);
void states_drop(struct states *states, uint64_t number);

/* Whether there is something to do, and do a piece of it. */
bool states_busy(const struct states *states);
/* Whether that is done to the files of the workspace, not to those of a branch; and whether they are only read. */
bool states_at_home(const struct states *states);
bool states_reading(const struct states *states);
void states_step(struct states *states);
