/* What the files of a session and its branches may take: workspace_size bytes, and one file for each 16 KiB of
 * them. No system call is refused for it. The warden is asked to add up what there is, the more often the less room
 * is left, and the router acts on it:
 *
 *   over the limit         the running cells are killed; the files stay, so that the next cell may delete some
 *   growing on from there  the session ends, and so it does with twice the limit
 *   over it between cells  nothing yet, if nothing grows
 *
 * Between cells nobody asks, unless the file system has become fuller or emptier.
 *
 * What is brought back with a state counts against nobody: while it is written the limits are higher by that, and
 * what there is afterwards is allowed. */
#pragma once

#include "config/config.h"
#include "proto/event.h"
#include "proto/message.h"

struct cages;
struct warden;

enum quota_step { QUOTA_KEPT, QUOTA_NOTED, QUOTA_KILLED };

struct quota {
	uint64_t size_max, files_max;	      /* 0: no limit */
	uint64_t size, files;		      /* as last surveyed, with what has been put there since */
	uint64_t put_size, put_files;	      /* since the survey under way was asked for */
	uint64_t size_allowed, files_allowed; /* more than the limit where what was over it stays */
	uint64_t brought_size, brought_files; /* what is being brought back may add */
	enum quota_step step;
	bool settling; /* cells have been killed for it, or files were brought back: what there is then is allowed
			*/
	uint64_t settles; /* by what is surveyed from then on */
	bool asked;
	uint64_t asked_at;
	uint64_t rest; /* how long at least until the next survey */
	struct timer timer;
};

/* Of the file system that holds the workspaces. */
struct disk_watch {
	struct timer timer;
	uint64_t size_free, files_free;
};

void quota_init(struct quota *quota, const struct profile *profile);
void quota_deinit(struct warden *warden);

/* A cell begins in one of the warden's sessions, or may have been writing while there was no router. */
void quota_on_run(struct warden *warden);
void quota_on_surveyed(struct warden *warden, const struct surveyed_message *surveyed);

/* Files are being brought back, and have been. */
void quota_on_going(struct warden *warden, const struct files_going_message *going);
void quota_on_back(struct warden *warden);

/* For files that the router itself writes: whether there is room for so much more; and that it has been written. */
bool quota_has_room(const struct warden *warden, uint64_t size, uint64_t files);
/* Somebody was refused because there is no room, and may have deleted files since the last survey: make one
 * soon. */
void quota_on_refused(struct warden *warden);
void quota_put(struct warden *warden, uint64_t size, uint64_t files);
