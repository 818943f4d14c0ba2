/* --dir, --memory, --cpus, --network. */
#include "cli.h"

static int failed(const struct cli *cli, const char *what, int r)
{
	return cli_usage(cli, "%s: %s", what, strerror(-r));
}

int cli_asked(struct cli *cli, bool here)
{
	bool on = cli->network && strcmp(cli->network, "on") == 0;
	const char *const limits[][2] = {
		{"memory", cli->memory}, {"cpu", cli->cpus}, {"network", on ? "host" : cli->network}};
	int r = 0;

	for (size_t i = 0; i < cli->directories.n; i++) {
		r = asked_add_directory(&cli->asked, cli->directories.items[i]);
		if (r)
			return failed(cli, cli->directories.items[i], r);
	}
	for (size_t i = 0; !r && i < ARRAY_SIZE(limits); i++)
		r = limits[i][1] ? asked_add(&cli->asked, limits[i][0], limits[i][1]) : 0;
	if (!r && here && cli->directories.n == 0)
		r = asked_add_here(&cli->asked);
	if (r)
		return failed(cli, "--dir", r);
	if (cli->asked.n > 0)
		cli->options.settings = (const char *const *)cli->asked.items;
	return 0;
}
