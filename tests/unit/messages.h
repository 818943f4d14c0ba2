/* Every message of proto/message.h as a row of a table, which the linker makes. Include it before that header. */
#pragma once

#include "proto/wire.h"

struct message_row {
	const char *name;
	const struct wire_schema *schema;
	unsigned vectors;
};

#undef WIRE_MESSAGE
#define WIRE_MESSAGE(message, type, first, FIELDS)                                                                 \
	WIRE_DECLARE(message, first, FIELDS);                                                                      \
	static struct message_row message##_row = {.name = #message, .schema = &message##_schema};                 \
	static struct message_row *const message##_at __attribute__((section("messages"), used)) = &message##_row

#include "proto/message.h"

extern struct message_row *const __start_messages[], *const __stop_messages[];

#define messages_for_each(at) for (struct message_row *const *at = __start_messages; at != __stop_messages; at++)
