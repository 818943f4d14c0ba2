/* The arguments of a call as JSON, for a line of the audit log. */
#pragma once

#include "proto/base.h"

#include <jansson.h>

/* A new reference. What JSON has no value for is text that says what it is; what is no msgpack, or too large for a
 * line, is null. */
json_t *arguments_as_json(struct bytes arguments);
