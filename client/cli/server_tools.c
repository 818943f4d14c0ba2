/* Functions that are tools of MCP servers: a source of the offer, over client/servers/. */
#include "offer.h"

#include "servers/offered.h"

#include "proto/clock.h"

#include <math.h>
#include <poll.h>

struct server_tools {
	struct source source;
	struct servers *servers;
	struct offered *offered;
};

/* A command runs one cell after the other, so none of them needs a name. */
#define CELL NULL

static void on_call(struct source *source, struct lair_calling *calling)
{
	struct server_tools *tools = (struct server_tools *)source;

	offered_call(tools->offered, CELL, calling);
	source->due = servers_due(tools->servers);
}

static void on_cancel(struct source *source, uint64_t number)
{
	struct server_tools *tools = (struct server_tools *)source;

	offered_cancel(tools->offered, CELL, number);
	source->due = servers_due(tools->servers);
}

static void on_end(struct source *source)
{
	offered_end(((struct server_tools *)source)->offered, CELL);
}

static void on_process(struct source *source)
{
	struct server_tools *tools = (struct server_tools *)source;

	(void)servers_process(tools->servers);
	source->due = servers_due(tools->servers);
}

static void on_free(struct source *source)
{
	struct server_tools *tools = (struct server_tools *)source;

	offered_free(tools->offered);
	servers_free(tools->servers);
	free(tools);
}

/* Until each has told its tools, or has failed, which is told. */
static int servers_wait(struct servers *servers)
{
	int r = 0;

	servers_start(servers);
	while (!r && !servers_settled(servers)) {
		struct pollfd fd = {.fd = servers_fd(servers), .events = POLLIN};
		double due = servers_due(servers), left = due > 0 ? fmax(0, due - clock_seconds()) : 1;

		if (poll(&fd, 1, (int)ceil(fmin(left, 60) * 1e3)) < 0 && errno != EINTR)
			return -errno;
		r = servers_process(servers);
	}
	return r ? r : servers_process(servers);
}

static int functions_add(struct offer *offer, struct server_tools *tools, const struct cli *cli)
{
	const struct lair_function *functions;
	size_t n;
	int r = 0;

	functions = offered_functions(tools->offered, &n);
	for (size_t i = 0; !r && i < n; i++) {
		r = offer_add(offer, &tools->source, &functions[i]);
		if (r == -EEXIST)
			return cli_usage(cli, "--function: a server has a function %s, too", functions[i].name);
	}
	return r;
}

int server_tools_offer(struct offer *offer, const struct cli *cli)
{
	struct server_tools *tools = calloc(1, sizeof(*tools));
	int r = tools ? cli_servers(cli, &tools->servers) : -ENOMEM;

	if (r) {
		free(tools);
		return r < 0 ? cli_fail(cli, "error", "%s", strerror(-r)) : r;
	}
	tools->source = (struct source){
		.call = on_call,
		.cancel = on_cancel,
		.end = on_end,
		.process = on_process,
		.free = on_free,
		.fd = servers_fd(tools->servers),
	};
	r = offer_source(offer, &tools->source);
	if (!r)
		r = offered_new(&tools->offered, tools->servers);
	if (!r)
		r = servers_wait(tools->servers);
	if (!r)
		r = functions_add(offer, tools, cli);
	return r < 0 ? cli_fail(cli, "error", "%s", strerror(-r)) : r;
}
