/* Displays of a cell for a model: pictures as pictures, the rest as text. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <jansson.h>

struct shown {
	json_t *items; /* array of {"id"?, "image" or "text"} */
	uint64_t dropped;
};

/* Returns 0 or -ENOMEM. */
int shown_init(struct shown *shown);
void shown_deinit(struct shown *shown);

void shown_add(struct shown *shown, const struct lair_display *display);
/* The value of a last expression, if that is a picture. */
void shown_add_value(struct shown *shown, struct lair_items data);

/* Puts into a result the text about it, */
void shown_describe(const struct shown *shown, json_t *structured);
/* and the pictures. */
void shown_append(const struct shown *shown, json_t *content);
