/* The front doors, and what they share. */
#pragma once

#include "exchange.h"

extern const struct door plain_door;  /* /health, /openapi.json, /execute */
extern const struct door native_door; /* /v1 */

/* openapi.c: what all doors' routes make. New. */
json_t *openapi_make(const struct server *server);

/* cells.c: a cell. @session: in laird; NULL: a one-shot. Its result as documents have it, new: without what is only
 * laird's, and with the tenant's own name of the session. */
json_t *result_document(const struct exchange *exchange, const struct lair_result *result);
/* The client has gone: interrupts the cell of exchange->call, if exchange->interrupts is set. For on_gone. */
void cell_left(struct exchange *exchange);
/* Whether the tenant may name @profile, or leave it to the default; otherwise the exchange has been answered.
 * *profilep: what laird is to be told. */
bool profile_of(struct exchange *exchange, const char *profile, const char **profilep);

void exec_begin(struct exchange *exchange);
