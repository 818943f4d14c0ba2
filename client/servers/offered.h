/* The functions of MCP servers that cells are offered, and the calls that cells make of them. */
#pragma once

#include "servers.h"

#include "lair.h"

struct offered;

/* @servers is borrowed, and must be freed later; NULL: there are none. Returns 0 or -ENOMEM. */
int offered_new(struct offered **offeredp, struct servers *servers);
struct offered *offered_free(struct offered *offered);

/* The functions of the servers now; valid until this is called again. */
const struct lair_function *offered_functions(struct offered *offered, size_t *np);

/* A call of @cell, whatever that is to the caller: it is answered from the loop, at the latest. */
void offered_call(struct offered *offered, const void *cell, struct lair_calling *calling);
/* The cell does not wait for it any more; or for none of its calls. */
void offered_cancel(struct offered *offered, const void *cell, uint64_t number);
void offered_end(struct offered *offered, const void *cell);
