/* serve: sessions over HTTP. The server itself is client/serve/. */
#include "cli.h"

#include "serve.h"

int verb_serve(struct cli *cli)
{
	const struct serve_options options = {
		.lair = {.socket = cli->socket, .config = cli->config, .no_start = cli->no_start},
		.listen = cli->listen,
		.tokens = cli->tokens,
		.certificate = cli->certificate,
		.key = cli->certificate_key,
	};

	if (!cli->certificate != !cli->certificate_key)
		return cli_usage(cli, "--cert and --cert-key come together");
	return serve_run(&options) ? EXIT_TROUBLE : 0;
}
