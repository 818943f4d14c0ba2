/* Clients that do not read. ZeroMQ keeps some of the messages for everybody, for each client. If it has no room for
 * one client, the message waits here, and so does the output of the cell. A client that has not read for PATIENCE
 * misses messages from then on, until it has read what it has. So the others wait for it only once. */
#include "bridge.h"

#include "proto/clock.h"

#include <inttypes.h>
#include <stdio.h>

#define PATIENCE 5.0
/* Clients may send requests meanwhile, and each answer is published. */
#define SIZE_MAX_HELD ((size_t)64 << 20)

/* The message that is being put together, if it waits. */
static struct held *held_new(struct holding *holding)
{
	struct held *held = calloc(1, sizeof(*held));

	if (!held)
		return NULL;
	if (!holding->first) {
		holding->first = held;
		holding->since = clock_seconds();
	} else {
		holding->last->next = held;
	}
	holding->last = held;
	return held;
}

void iopub_send(struct bridge *bridge, struct lair_text frame, bool more)
{
	struct holding *holding = &bridge->holding;

	/* The first frame decides for all of the message. */
	if (!holding->within &&
	    (holding->first || sockets_send(&bridge->sockets, CHANNEL_IOPUB, frame, more) == -EAGAIN))
		holding->open = held_new(holding);
	else if (!holding->within)
		holding->open = NULL;
	else if (!holding->open)
		(void)sockets_send(&bridge->sockets, CHANNEL_IOPUB, frame, more);
	if (holding->open && !frames_add(&holding->open->frames, frame.data, frame.size))
		holding->size += frame.size;
	holding->missed += holding->missed > 0 && !more;
	holding->within = more;
}

/* Returns 0, or -EAGAIN if a client has no room. */
static int first_send(struct bridge *bridge)
{
	struct holding *holding = &bridge->holding;
	struct held *held = holding->first;
	int r = 0;

	for (size_t i = 0; r != -EAGAIN && i < held->frames.n; i++)
		r = sockets_send(&bridge->sockets, CHANNEL_IOPUB, held->frames.items[i], i + 1 < held->frames.n);
	if (r == -EAGAIN)
		return r;
	holding->first = held->next;
	holding->size -= held->frames.size;
	holding->since = clock_seconds();
	frames_deinit(&held->frames);
	free(held);
	return 0;
}

/* ZeroMQ leaves out who has no room, and asks about it no more until it has read. */
static void first_send_lossy(struct bridge *bridge)
{
	(void)sockets_wait_for_all(&bridge->sockets, false);
	(void)first_send(bridge);
	(void)sockets_wait_for_all(&bridge->sockets, true);
}

void holding_turn(struct bridge *bridge)
{
	struct holding *holding = &bridge->holding;

	while (holding->first && first_send(bridge) != -EAGAIN)
		;
	if (!holding->first || (clock_seconds() - holding->since < PATIENCE && holding->size < SIZE_MAX_HELD))
		return;
	fprintf(stderr, "lair jupyter: a client has not read for %g s: it misses output from here on\n", PATIENCE);
	holding->missed = MAX(holding->missed, (uint64_t)1);
	first_send_lossy(bridge);
}

void holding_end(struct bridge *bridge)
{
	while (bridge->holding.first)
		first_send_lossy(bridge);
}

void holding_tell(struct job *job)
{
	struct holding *holding = &job->bridge->holding;
	uint64_t missed = holding->missed;

	holding->missed = 0;
	if (missed > 0)
		tell_line(job,
			  "A client has not read for %g s: up to %" PRIu64
			  " messages before this one were dropped for it.",
			  PATIENCE, missed);
}
