/* The beginning and the end of an output that may be endless: a model gets these. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <jansson.h>

#define EXCERPT_HALF ((size_t)10000)

struct excerpt {
	uint64_t size; /* of the output: the added and the skipped bytes */
	size_t n_head;
	uint64_t n_tail; /* how much was added behind the head, or since the last bytes were skipped */
	bool skipped;
	char head[EXCERPT_HALF], tail[EXCERPT_HALF];
};

/* Begin an empty excerpt. A struct of zeros is one, too. */
void excerpt_begin(struct excerpt *excerpt);
void excerpt_add(struct excerpt *excerpt, struct lair_text text);
/* So many bytes of the output are missing. */
void excerpt_skip(struct excerpt *excerpt, uint64_t size);
/* Whether it leaves bytes out. */
bool excerpt_cut(const struct excerpt *excerpt);
/* The excerpt as a text with a note about the gap; null if it is empty. New. */
json_t *excerpt_json(const struct excerpt *excerpt);
/* The same for a whole text; null if it is absent. New. */
json_t *excerpt_of(struct lair_text text);
