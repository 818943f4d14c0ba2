/* The tables of the ledgers. */
#define WIRE_TABLES
#include "records.h"

struct bytes record_text(const char *text)
{
	return bytes_of(text && *text ? text : NULL);
}

void record_take_buffer(msgpack_sbuffer *buffer, struct bytes from)
{
	if (from.size > 0)
		(void)msgpack_sbuffer_write(buffer, from.data, from.size);
}
