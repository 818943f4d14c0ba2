/* serve: sessions over HTTP. The server itself is client/serve/. */
#include "cli.h"

#include "serve/doors.h"
#include "serve/serve.h"

/* A door without claims takes requests for which it has a route. */
static const struct door *const doors[] = {&e2b_door, &mcp_door, &plain_door, &native_door, &dashboard_door, NULL};

int verb_serve(struct cli *cli)
{
	const struct serve_options options = {
		.lair = {.socket = cli->socket, .config = cli->config, .no_start = cli->no_start},
		.doors = doors,
		.listen = cli->listen,
		.tokens = cli->tokens,
		.certificate = cli->certificate,
		.key = cli->certificate_key,
		.origins = cli->origins ? cli->origins : getenv("LAIR_ORIGINS"),
	};

	if (!cli->certificate != !cli->certificate_key)
		return cli_usage(cli, "--cert and --cert-key come together");
	return serve_run(&options) ? EXIT_TROUBLE : 0;
}
