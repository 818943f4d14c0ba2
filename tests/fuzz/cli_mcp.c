/* Whatever a client of lair mcp sends: each line is taken, nothing that is said is no JSON-RPC, and no request is
 * left waiting, since there is no daemon to wait for, but those that are to stay open. */
#include "server.h"

#include <stdio.h>

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void said(const struct outbox *outbox)
{
	size_t start = outbox->start;

	while (start < outbox->end) {
		const char *at = outbox->data + start, *newline = memchr(at, '\n', outbox->end - start);
		json_t *message;

		check(newline);
		message = json_loadb(at, (size_t)(newline - at), JSON_ALLOW_NUL, NULL);
		check(json_is_object(message) && json_object_get(message, "jsonrpc"));
		check(json_object_get(message, "id") || json_object_get(message, "method"));
		json_decref(message);
		start += (size_t)(newline - at) + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct mcp_options options = {.lair = {.socket = "/nowhere/lair/socket", .no_start = true},
						   .full = true};
	const char *at = (const char *)data, *end = at + size;
	struct server server;

	server_init(&server, &options, -1, -1);
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		server_line(&server, (struct lair_text){.data = at, .size = (size_t)(stop - at)});
		at = stop + 1;
	}
	check(!server.error);
	for (const struct request *request = server.requests; request; request = request->next)
		check(!request->tool && !request->call);
	said(&server.outbox);
	server_deinit(&server);
	return 0;
}
