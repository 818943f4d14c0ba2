/* What outlives even the keeper, where a service manager keeps descriptors for its services (sd_notify(3),
 * FDSTORE): the listening socket, so that clients wait for the next keeper, and the ledger of promises, so that
 * what was asked is not done twice. The manager gives them back when it starts the service again, and only then; so
 * it cannot be the store of routers too. */
#pragma once

#include "instance.h"
#include "store.h"

struct handover {
	bool offered; /* the service manager keeps it */
};

void handover_init(struct handover *handover);

/* Take what the last keeper has left, if anything: its listening socket into @instance, unless another now has the
 * name, the rest into @store. The remainder is closed. */
void handover_claim(struct instance *instance, struct store *store);

/* For the next keeper, instead of earlier ones. They stay the caller's; they may not arrive. */
void handover_leave_listener(const struct handover *handover, struct instance *instance);
void handover_leave_ledger(const struct handover *handover, const struct store_name *ledger, int fd);
