/* The target of a request: a path and a query, as bytes that a stranger has sent. */
#pragma once

#include "proto/base.h"

#include <jansson.h>

#define TARGET_SEGMENTS 16

/* Segments lie in @text, decoded: a slash in one was sent as %2F. */
struct target {
	char *text; /* owned */
	const char *segments[TARGET_SEGMENTS];
	size_t n;
	json_t *query; /* of strings; of a name that comes twice, the last */
	bool slash;    /* the path ends with one */
};

/* Returns 0, -EINVAL (it is none: no leading slash, a bad escape, a NUL, no UTF-8, too many segments) or -ENOMEM.
 * Only after 0 it is to be freed. */
int target_parse(struct target *target, const char *raw);
void target_deinit(struct target *target);
/* Whether its path is that of @pattern, as "/v1/sessions/{id}". With one that ends with "/{*}" anything may follow.
 */
bool target_matches(const struct target *target, const char *pattern);
/* The segment in the place of {@name}; NULL if @pattern has none. */
const char *target_value(const struct target *target, const char *pattern, const char *name);
