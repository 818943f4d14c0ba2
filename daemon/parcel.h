/* Large frames on their way through ZeroMQ, which bounds how many wait for a client, not how large they are. Each
 * is counted from when ZeroMQ takes it until its thread has written it out. */
#pragma once

#include "list.h"

#include <sys/types.h>
#include <zmq.h>

struct address;
struct parcel;

/* Of those, for one client: so much, or one. */
#define PARCELS_MAX ((size_t)8 << 20)

/* Whether the client at @to, among those in @accounts, may be sent @size more now. */
bool parcel_fits(struct list *accounts, const struct address *to, size_t size);
/* @outer is to be sent instead of @frame, which is empty then: all that may fail does so before anything is sent.
 * Returns 0 or -ENOMEM. */
int parcel_wrap(struct parcel **parcelp, zmq_msg_t *outer, struct list *accounts, const struct address *to,
		zmq_msg_t *frame);
/* It has not been sent: @frame is what it was. */
void parcel_unwrap(struct parcel *parcel, zmq_msg_t *outer, zmq_msg_t *frame);

/* When ZeroMQ has ended. */
void parcels_deinit(struct list *accounts);
