/* The server of `lair mcp` for a transport of somebody else's: messages come in and go out as documents, over a
 * handle to laird that is lent to it. */
#pragma once

#include "mcp.h"

struct conversation;

/* A message to the client, which is taken over. It may come inside conversation_say. @about: the id of the client's
 * request that it answers or belongs to; borrowed, may be NULL. */
typedef void conversation_send(void *userdata, json_t *document, const json_t *about);

/* The strings of @options and @session, for calls that name none, are borrowed, and so is @lair, which is
 * connected. NULL without memory. */
struct conversation *conversation_new(const struct mcp_options *options, struct lair *lair, const char *session,
				      conversation_send *send, void *userdata);
/* Its cells are interrupted. Not inside a callback of liblair. Returns NULL. */
struct conversation *conversation_free(struct conversation *conversation);
/* What the client says: one message. */
void conversation_say(struct conversation *conversation, struct lair_text message);
/* Do what is due: a few times a second. */
void conversation_tick(struct conversation *conversation);
