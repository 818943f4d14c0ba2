/* How to answer a request: by way of its promise, if it has one, and else straight to who asked. */
#pragma once

#include "clients.h"
#include "config/deciding.h"

/* Encode and send the one final message. Without memory for it, an error takes its place, or else the connections
 * of all who wait end. Returns 0, CLIENT_E_GONE, or -errno: another answer went out. */
int client_send(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		const void *message);
/* The same, for callers that have another answer if there is no memory for this one: on -errno nothing has been
 * sent. */
int client_answer(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		  const void *message);

/* The same as client_send, unless @r says that @message could not be put together. */
void client_reply(struct clients *clients, const struct address *to, int r, const struct wire_schema *schema,
		  const void *message);

/* An `error`, with the sentence printed as by printf. */
int client_error(struct clients *clients, const struct address *to, const char *code, const char *format, ...)
	_printf_(4, 5);

/* The same for what @setting of @profile decides, or of [daemon] if @profile is NULL; NULL: not known. A model may
 * read the sentence, so where the setting is goes beside it. */
int client_limit(struct clients *clients, const struct address *to, const char *code, const char *profile,
		 const char *setting, const char *format, ...) _printf_(6, 7);

/* The same as client_error, with what is known of the session that is no more: @ended is a record, or absent; @why:
 * its cause, or NULL. */
int client_gone(struct clients *clients, const struct address *to, const char *code, struct bytes ended,
		const char *why, const char *format, ...) _printf_(6, 7);

/* Where these settings are, as far as @uid may know; absent if there are none. */
struct bytes client_setting(char text[static DECIDING_SIZE], const struct clients *clients, uid_t uid,
			    const struct deciding *deciding, const char *profile);
