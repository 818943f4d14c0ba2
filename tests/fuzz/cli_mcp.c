/* Whatever a client of lair mcp sends: each line is taken, nothing that is said is no JSON-RPC, and no request is
 * left waiting, since there is no daemon to wait for, but those that are to stay open. */
#include "mcp/engine.h"

#include <stdio.h>

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void said(void *userdata, json_t *message, const json_t *about)
{
	(void)userdata;
	(void)about;
	check(json_is_object(message) && json_object_get(message, "jsonrpc"));
	check(json_object_get(message, "id") || json_object_get(message, "method"));
	json_decref(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event_loop loop;
	const struct mcp_options options = {
		.lair = {.socket = "/nowhere/lair/socket", .no_start = true}, .full = true, .loop = &loop};
	const char *at = (const char *)data, *end = at + size;
	struct engine *engine;

	if (!loop.epoll_fd)
		check(event_loop_init(&loop) == 0);
	engine = engine_new(&options, NULL, "s", said, NULL);
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		engine_line(engine, (struct lair_text){.data = at, .size = (size_t)(stop - at)});
		at = stop + 1;
	}
	check(!engine->error);
	for (const struct request *request = engine->requests; request; request = request->next)
		check(!request->tool && !request->call);
	engine_free(engine);
	return 0;
}
