/* lair://sessions/SESSION/PATH, and the type of a file by its name. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <jansson.h>

#define URI_TEMPLATE "lair://sessions/{session_id}/{+path}"

/* New. */
json_t *uri_of(struct lair_text session, struct lair_text path);
/* The session and the path of @uri, both the caller's to free. False if it is no such URI: then both are NULL or
 * unchanged. */
bool uri_parse(const char *uri, char **sessionp, char **pathp);

/* The MIME type of a file of that name; NULL if the name does not tell it. Static. */
const char *uri_type(struct lair_text path);
