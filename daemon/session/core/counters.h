/* The counters of `lair status`, in a page that outlives the router. The router counts in its own memory and copies
 * that to the page once a round, so counting costs no more than before. */
#pragma once

#include "proto/base.h"

struct cell;
struct sessions;
struct verdict;
struct wire_list;

/* Go on from the page in @fd, or -1 to begin one: *fdp is then its descriptor, the caller's, to be stored for the
 * next router; else -1. Without memory the counters begin anew and are not kept. */
void counters_open(struct sessions *sessions, int fd, int *fdp);
/* @cell of a client has ended. */
void counters_cell(struct sessions *sessions, const struct cell *cell, const struct verdict *verdict);
/* How long cells have taken, as `stats` tells it. */
void counters_put_times(const struct sessions *sessions, struct wire_list *list);
/* The end of a round. */
void counters_keep(struct sessions *sessions);
/* Requests that got an error or were dropped, and connections that were refused. */
uint64_t counters_refused(const struct sessions *sessions);
