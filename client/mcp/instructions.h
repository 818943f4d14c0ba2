/* The text that a model gets before it calls anything. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <jansson.h>

/* Run a cell that finds out what there is in a session of @profile (NULL: the default one). Returns as
 * lair_exec. */
int instructions_ask(struct lair *lair, struct lair_call **callp, const char *profile);
/* The text, with the findings of that cell. New. */
json_t *instructions_json(const struct lair_result *found);
/* The text without such a cell, for sessions of @profile of a daemon with these @counters; NULL: nothing is known
 * of it. New. */
json_t *instructions_general(const struct lair_counters *counters, const char *profile);
