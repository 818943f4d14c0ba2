/* mcp and tools: sessions as tools of models. The server itself is client/mcp/. */
#include "cli.h"

#include "base/json.h"

#include "mcp/instructions.h"
#include "mcp/mcp.h"
#include "servers/servers.h"

#include <limits.h>

/* Indented, because a person pastes it. */
static int print_pretty(json_t *document)
{
	int r = document ? json_dumpf(document, stdout, JSON_INDENT(2)) : -1;

	putchar('\n');
	json_decref(document);
	return r < 0 || ferror(stdout) ? EXIT_TROUBLE : 0;
}

static int tools_set(const struct cli *cli, bool *fullp)
{
	*fullp = cli->tools && strcmp(cli->tools, "full") == 0;
	if (cli->tools && !*fullp && strcmp(cli->tools, "minimal") != 0)
		return cli_usage(cli, "--tools: expected minimal or full; got \"%s\"", cli->tools);
	return 0;
}

static void add_argument(json_t *args, const char *flag, const char *value)
{
	if (!value)
		return;
	json_array_append_new(args, json_string(flag));
	json_array_append_new(args, json_text(lair_text(value)));
}

/* The entry for the configuration of a client of the protocol: this very command line, and the daemon that it
 * means. The client starts it in another directory, with nearly no environment. */
static int config_print(const struct cli *cli)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	json_t *args = json_pack("[s]", "mcp");
	char timeout[32], config[PATH_MAX], servers[PATH_MAX];

	path[MAX(n, (ssize_t)0)] = '\0';
	add_argument(args, "--tools", cli->tools);
	add_argument(args, "--session", cli->session);
	add_argument(args, "--profile", cli->profile);
	snprintf(timeout, sizeof(timeout), "%g", cli->timeout);
	add_argument(args, "--timeout", cli->timeout > 0 ? timeout : NULL);
	snprintf(timeout, sizeof(timeout), "%g", cli->patience);
	add_argument(args, "--patience", cli->patience > 0 ? timeout : NULL);
	add_argument(args, "--socket", lair_socket(cli->lair));
	add_argument(args, "--config", cli->config && realpath(cli->config, config) ? config : cli->config);
	add_argument(args, "--servers", cli->servers && realpath(cli->servers, servers) ? servers : cli->servers);
	for (size_t i = 0; i < cli->allow.n; i++)
		add_argument(args, "--allow", cli->allow.items[i]);
	if (cli->instructions)
		json_array_append_new(args, json_string("--instructions"));
	if (cli->no_start)
		json_array_append_new(args, json_string("--no-start"));
	return print_pretty(json_pack("{s:{s:{s:o, s:o}}}", "mcpServers", "lair", "command",
				      json_text(lair_text(n > 0 ? path : "lair")), "args", args));
}

int verb_mcp(struct cli *cli)
{
	struct mcp_options options = {
		.loop = cli->loop,
		.lair = {.socket = cli->socket, .config = cli->config, .no_start = cli->no_start},
		.session = cli->session,
		.profile = cli->profile,
		.timeout = cli->timeout,
		.patience = cli->patience,
		.instructions = cli->instructions,
	};
	int r;

	r = tools_set(cli, &options.full);
	if (r)
		return r;
	if (cli->print_config)
		return config_print(cli);
	r = cli_servers(cli, &options.servers);
	if (r)
		return r;
	r = mcp_serve(&options, STDIN_FILENO, STDOUT_FILENO);
	servers_free(options.servers);
	return r ? cli_fail(cli, "error", "%s", strerror(-r)) : 0;
}

static int instructions_print(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	json_t *text;
	int r;

	r = cli_connect(cli, NEED_STARTED);
	if (r)
		return r;
	r = cli_wait(cli, instructions_ask(cli->lair, &call, cli->profile), &call);
	if (r)
		return cli_trouble(cli, r);
	text = instructions_json(lair_result(call));
	if (cli->json)
		return json_print(json_pack("{s:o}", "instructions", text));
	fputs(json_string_value(text), stdout);
	json_decref(text);
	return ferror(stdout) ? EXIT_TROUBLE : 0;
}

int verb_tools(struct cli *cli)
{
	static const struct {
		const char *name;
		enum mcp_format format;
	} formats[] = {{"openai", MCP_OPENAI}, {"anthropic", MCP_ANTHROPIC}, {"mcp", MCP_TOOLS}};
	const char *wanted = cli->format ? cli->format : "openai";
	bool full;
	int r;

	r = tools_set(cli, &full);
	if (r)
		return r;
	if (cli->instructions)
		return instructions_print(cli);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(wanted, formats[i].name) == 0)
			return print_pretty(mcp_tools(formats[i].format, full));
	return cli_usage(cli, "--format: expected openai, anthropic or mcp; got \"%s\"", wanted);
}
