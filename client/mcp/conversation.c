/* A server without input and output of its own. */
#include "conversation.h"

#include "server.h"

#include <stdio.h>
#include <stdlib.h>

struct conversation {
	struct server server;
	struct mcp_options options;
	conversation_send *send;
	void *userdata;
};

static void on_send(struct server *server, json_t *document, const json_t *about)
{
	struct conversation *conversation = (struct conversation *)server;

	conversation->send(conversation->userdata, document, about);
}

struct conversation *conversation_new(const struct mcp_options *options, struct lair *lair, const char *session,
				      conversation_send *send, void *userdata)
{
	struct conversation *conversation = calloc(1, sizeof(*conversation));

	if (!conversation)
		return NULL;
	conversation->options = *options;
	conversation->send = send;
	conversation->userdata = userdata;
	server_init(&conversation->server, &conversation->options, -1, -1);
	snprintf(conversation->server.session, sizeof(conversation->server.session), "%s", session);
	conversation->server.lair = lair;
	conversation->server.lent = true;
	conversation->server.send = on_send;
	if (conversation->server.error)
		return conversation_free(conversation);
	return conversation;
}

struct conversation *conversation_free(struct conversation *conversation)
{
	struct request *next;

	if (!conversation)
		return NULL;
	conversation->server.mute = true;
	for (struct request *request = conversation->server.requests; request; request = next) {
		next = request->next;
		if (!request->cancelled && !request->answered)
			request_cancel(request);
	}
	server_deinit(&conversation->server);
	free(conversation);
	return NULL;
}

void conversation_say(struct conversation *conversation, struct lair_text message)
{
	server_line(&conversation->server, message);
}

void conversation_tick(struct conversation *conversation)
{
	struct request *next;
	double now = clock_seconds();

	for (struct request *request = conversation->server.requests; request; request = next) {
		next = request->next;
		if (request->due && request->due <= now)
			request->on_due(request);
	}
}
