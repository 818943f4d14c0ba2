/* Families as they are kept for the next router: what has changed in a round is written down at its end, before
 * anything that was heard leaves its socket and anything that was said goes out. */
#pragma once

struct router;
struct warden;

/* Something about it or its sessions may have changed. */
void family_touch(struct warden *warden);

/* A cell has shown something. Counts with the next commit. Returns 0 or -errno. */
struct cell;
struct shown;
int family_write_display(struct warden *warden, struct cell *cell, const struct shown *shown);

/* Write down what has changed. */
void families_commit(struct router *router);
/* A point of fault.h, for all that this concerns. */
void families_fault(struct router *router, const char *name);
/* That is done: now do what cannot be undone. */
void families_settle(struct router *router);
