/* jupyter: sessions as kernels of Jupyter. The kernel itself is client/jupyter/. */
#include "cli.h"

#include "jupyter/jupyter.h"

#include <limits.h>
#include <stdio.h>

#define ARGUMENTS_MAX (24 + 2 * CLI_LIST_MAX)

static int run(struct cli *cli)
{
	const struct jupyter_options options = {
		.asked = &cli->asked,
		.lair = {.socket = cli->socket, .config = cli->config, .no_start = cli->no_start},
		.connection = cli->file,
		.session = cli->session,
		.profile = cli->profile,
		.by_path = cli->by_path,
		.timeout = cli->timeout,
	};

	int r = cli->file ? cli_asked(cli, true) : cli_usage(cli, "run needs -f FILE, the connection file");

	return r ? r : jupyter_run(&options);
}

/* The arguments of the kernel, besides its connection file. */
static void arguments_make(const char **arguments, const struct cli *cli, char timeout[static 32])
{
	const char *const flags[][2] = {
		{"--session", cli->session},
		{"--profile", cli->profile},
		{"--socket", cli->socket},
		{"--config", cli->config},
		{"--timeout", cli->timeout > 0 ? timeout : NULL},
		{"--memory", cli->memory},
		{"--cpus", cli->cpus},
		{"--network", cli->network},
	};
	size_t n = 0;

	snprintf(timeout, 32, "%g", cli->timeout);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (flags[i][1]) {
			arguments[n++] = flags[i][0];
			arguments[n++] = flags[i][1];
		}
	for (size_t i = 0; i < cli->directories.n; i++) {
		arguments[n++] = "--dir";
		arguments[n++] = cli->directories.items[i];
	}
	if (cli->by_path)
		arguments[n++] = "--by-path";
	if (cli->no_start)
		arguments[n++] = "--no-start";
	arguments[n] = NULL;
}

/* The environment of Python in which this was called, as pip takes it. */
static const char *prefix_of(const struct cli *cli)
{
	if (cli->prefix)
		return cli->prefix;
	if (!cli->sys_prefix)
		return NULL;
	if (getenv("VIRTUAL_ENV"))
		return getenv("VIRTUAL_ENV");
	return getenv("CONDA_PREFIX") ? getenv("CONDA_PREFIX") : "/usr/local";
}

/* As jupyter_client has it: it leaves out kernels of other names. */
static bool name_valid(const char *name)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return *name && name[0] != '.' && name[strspn(name, characters)] == '\0';
}

static int install(const struct cli *cli)
{
	const char *arguments[ARGUMENTS_MAX];
	char timeout[32], path[PATH_MAX], display[256];
	struct jupyter_spec spec = {.name = cli->name, .prefix = prefix_of(cli), .arguments = arguments};
	int r;

	if (cli->user && spec.prefix)
		return cli_usage(cli, "--user, --sys-prefix and --prefix are about one place each");
	if (cli->name && !name_valid(cli->name))
		return cli_usage(cli, "--name: expected letters, digits, ., _ and -; got \"%s\"", cli->name);
	arguments_make(arguments, cli, timeout);
	snprintf(display, sizeof(display), "Python (Lair%s%s)", cli->session ? ": " : "",
		 cli->session ? cli->session : "");
	spec.display = display;
	r = jupyter_install(&spec, path);
	if (r)
		return cli_fail(cli, "error", "%s: %s", path, strerror(-r));
	printf("%s\n", path);
	return 0;
}

int verb_jupyter(struct cli *cli)
{
	if (strcmp(cli->args[0], "run") == 0)
		return run(cli);
	if (strcmp(cli->args[0], "install") == 0)
		return install(cli);
	return cli_usage(cli, "expected install or run; got \"%s\"", cli->args[0]);
}
