/* The versions of MCP: the stateless era, in which each request names its version, and the one before, with a
 * handshake. */
#pragma once

#include "engine.h"

/* Whether @params is of the stateless era. */
bool versions_modern(const json_t *params);
/* Checks the _meta of such params. Returns the code of an error, its message and data (new, may be NULL); or 0. */
int versions_check(const json_t *params, const char **messagep, json_t **datap);

/* Whether the client of a request with @params can ask its person. */
bool versions_elicits(const struct engine *engine, const json_t *params);

/* Adds the fields of every result of the stateless era. */
void versions_complete(json_t *result);
/* If the client is of that era: adds the fields that allow it to keep the result for @ttl_ms. */
void versions_cacheable(const struct request *request, json_t *result, int ttl_ms, bool public);

/* Whether a client of the handshake era knows links to resources. */
bool versions_links(const struct request *request);

/* The methods. */
void versions_initialize(struct request *request);
void versions_discover(struct request *request);
