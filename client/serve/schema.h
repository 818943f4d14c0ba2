/* JSON Schemas of requests and answers, by name. schemas.json is what requests are checked by, and a part of
 * /openapi.json. */
#pragma once

#include "proto/base.h"

#include <jansson.h>

#define SCHEMA_WHY_SIZE 256

/* Read them all. Returns 0, or -EINVAL: the file is not valid JSON, which a test finds. */
int schemas_open(void);
void schemas_close(void);
/* All of them by name; borrowed. */
json_t *schemas_all(void);

/* Whether @document is as the schema @name says. If not, @why is one sentence. Of JSON Schema it knows type, enum,
 * $ref, properties, required, additionalProperties: false, items, minItems, maxItems, minimum, maximum, minLength
 * and maxLength.
 */
bool schema_check(const char *name, const json_t *document, char why[static SCHEMA_WHY_SIZE]);
/* The same for the parameters of a query, which are strings: @text is an object of schemas by name. */
bool schema_check_query(const char *text, const json_t *query, char why[static SCHEMA_WHY_SIZE]);
