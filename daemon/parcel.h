/* Large frames on their way through ZeroMQ, which bounds how many wait for a client, not how large they are. Each
 * is counted from when ZeroMQ takes it until its thread has written it out. */
#pragma once

#include "list.h"

#include <sys/types.h>
#include <zmq.h>

struct address;

/* Of those, for one client: so much, or one. */
#define PARCELS_MAX ((size_t)8 << 20)

/* Whether the client at @to, among those in @accounts, may be sent @size more now. */
bool parcel_fits(struct list *accounts, const struct address *to, size_t size);
/* Send @frame, whose identity frame has been sent; it is ZeroMQ's afterwards. Returns 0 or -errno. */
int parcel_send(struct list *accounts, const struct address *to, void *socket, zmq_msg_t *frame);

/* When ZeroMQ has ended. */
void parcels_deinit(struct list *accounts);
