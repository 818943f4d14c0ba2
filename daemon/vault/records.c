/* The tables of the ledgers. */
#define WIRE_TABLES
#include "records.h"

#include <stdio.h>

struct bytes record_text(const char *text)
{
	return bytes_of(text && *text ? text : NULL);
}

void record_take_text(char *text, size_t size, struct bytes from)
{
	snprintf(text, size, "%.*s", (int)MIN(from.size, size - 1), from.data ? from.data : "");
}

void record_take_buffer(msgpack_sbuffer *buffer, struct bytes from)
{
	if (from.size > 0)
		(void)msgpack_sbuffer_write(buffer, from.data, from.size);
}
