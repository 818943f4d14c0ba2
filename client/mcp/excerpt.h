/* The beginning and the end of an output that may be endless: a model gets these. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <jansson.h>

#define EXCERPT_HALF ((size_t)10000)

struct excerpt {
	uint64_t size; /* of all that was added */
	char head[EXCERPT_HALF], tail[EXCERPT_HALF];
};

void excerpt_add(struct excerpt *excerpt, struct lair_text text);
/* New. */
json_t *excerpt_json(const struct excerpt *excerpt);
/* The same of one text; null if it is absent. New. */
json_t *excerpt_of(struct lair_text text);
