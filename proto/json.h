/* Values of msgpack as text of JSON. */
#pragma once

#include "proto/wire.h"

/* The value @raw, already scanned, as JSON; for the caller to free. NULL without memory. JSON has no bytes: they
 * become text in base 64. It has no other numbers than finite ones: they become null. Keys that are not text become
 * text; bytes that are not UTF-8 become U+FFFD. After @max bytes it is cut, and *@cutp, which may be NULL, says so.
 */
char *json_written(struct bytes raw, size_t max, bool *cutp);
