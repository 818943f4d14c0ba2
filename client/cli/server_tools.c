/* Functions that are tools of MCP servers: a source of the offer, over client/servers/. */
#include "offer.h"

#include "servers/offered.h"

struct server_tools {
	struct source source;
	struct servers *servers;
	struct offered *offered;
};

/* A command runs one cell after the other, so none of them needs a name. */
#define CELL NULL

static void on_call(struct source *source, struct lair_calling *calling)
{
	offered_call(((struct server_tools *)source)->offered, CELL, calling);
}

static void on_cancel(struct source *source, uint64_t number)
{
	offered_cancel(((struct server_tools *)source)->offered, CELL, number);
}

static void on_end(struct source *source)
{
	offered_end(((struct server_tools *)source)->offered, CELL);
}

static void on_free(struct source *source)
{
	struct server_tools *tools = (struct server_tools *)source;

	offered_free(tools->offered);
	servers_free(tools->servers);
	free(tools);
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
		.free = on_free,
	};
	offer_source(offer, &tools->source);
	r = offered_new(&tools->offered, tools->servers);
	if (!r)
		r = servers_wait(tools->servers);
	if (!r)
		r = functions_add(offer, tools, cli);
	return r < 0 ? cli_fail(cli, "error", "%s", strerror(-r)) : r;
}
