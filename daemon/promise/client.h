/* How to answer a request: by way of its promise, if it has one, and else straight to who asked. */
#pragma once

#include "clients.h"

/* Encode and send the one final message. Without memory for it, an error takes its place, or else the connections
 * of all who wait end. Returns 0, CLIENT_E_GONE, or -errno: another answer went out. */
int client_send(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		const void *message);
/* The same, for callers that have another answer if there is no memory for this one: on -errno nothing has been
 * sent. */
int client_answer(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		  const void *message);

/* An `error`, with the sentence printed as by printf. */
int client_error(struct clients *clients, const struct address *to, const char *code, const char *format, ...)
	_printf_(4, 5);

/* The same, with what is known of the session that is no more: @ended is a record, or absent. */
int client_gone(struct clients *clients, const struct address *to, const char *code, struct bytes ended,
		const char *format, ...) _printf_(5, 6);
