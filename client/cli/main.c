/* lair: the verbs, as a table. */
#include "cli.h"

#include <fcntl.h>
#include <limits.h>

static int verb_help(struct cli *cli);

static const struct verb verbs[] = {
	{"exec", "[-s ID] CODE | -f FILE | -", "run code in a session, or in one made for it",
	 WITH_SESSION | WITH_PROFILE | WITH_FILE | WITH_STREAM | WITH_KEY | WITH_FIGURES | WITH_OPTIONS |
		 WITH_COLOR | WITH_FUNCTIONS | WITH_SERVERS | WITH_ALLOW,
	 0, 1, NEED_NOTHING, verb_exec},
	{"install", "ID PACKAGE...", "install packages in a session; its variables stay, and undo takes them back",
	 ON_SESSION | WITH_PROFILE | WITH_COLOR, 2, INT_MAX, NEED_STARTED, verb_install},
	{"attach", "ID CELL | [ID] --key KEY | KEY", "wait for a cell that runs, or get its result again",
	 ON_SESSION | WITH_STREAM | WITH_KEY | WITH_FIGURES | WITH_COLOR | WITH_FUNCTIONS | WITH_SERVERS |
		 WITH_ALLOW,
	 0, 2, NEED_RUNNING, verb_attach},
	{"results", "[ID]", "list the cells of a session, or those without one, that can be attached to",
	 ON_SESSION, 0, 1, NEED_RUNNING, verb_results},
	{"calls", "[ID]", "list the calls of functions that wait for an answer", ON_SESSION, 0, 1, NEED_RUNNING,
	 verb_calls},
	{"answer", "ID N VALUE | ID N --approve | ID N --refuse WHY | --key KEY N ...",
	 "answer a call instead of the program that offers the function; VALUE is JSON, - for stdin",
	 ON_SESSION | WITH_KEY | WITH_ANSWER, 1, 3, NEED_RUNNING, verb_answer},
	{"repl", "[-s ID]", "a Python prompt in a session",
	 WITH_SESSION | WITH_PROFILE | WITH_FIGURES | WITH_PROMPT_OPTIONS | WITH_COLOR | WITH_FUNCTIONS |
		 WITH_SERVERS | WITH_ALLOW,
	 0, 0, NEED_STARTED, verb_repl},
	{"open", "ID", "make a session, or see that it is there", ON_SESSION | WITH_PROFILE, 1, 1, NEED_STARTED,
	 verb_open},
	{"top", "", "watch your sessions, the busiest first", WITH_TOP, 0, 0, NEED_RUNNING, verb_top},
	{"ls", "", "list your sessions", WITH_LONG, 0, 0, NEED_RUNNING, verb_ls},
	{"info", "ID", "show all about a session", ON_SESSION, 1, 1, NEED_RUNNING, verb_info},
	{"interrupt", "ID", "interrupt the cell that a session runs", ON_SESSION | WITH_KILL, 1, 1, NEED_RUNNING,
	 verb_interrupt},
	{"reset", "ID", "give a session a fresh interpreter; its files stay", ON_SESSION | WITH_KEEP, 1, 1,
	 NEED_RUNNING, verb_reset},
	{"close", "ID", "end a session", ON_SESSION, 1, 1, NEED_RUNNING, verb_close},
	{"vars", "ID", "list the variables of a session", ON_SESSION | WITH_FORGET, 1, 1, NEED_RUNNING, verb_vars},
	{"inspect", "ID NAME", "say what a name of a session is: signature, docstring, source",
	 ON_SESSION | WITH_CURSOR | WITH_SOURCE, 2, 2, NEED_RUNNING, verb_inspect},
	{"complete", "ID CODE", "list completions at the end of code in a session", ON_SESSION | WITH_CURSOR, 2, 2,
	 NEED_RUNNING, verb_complete},
	{"history", "ID [N]", "list the cells a session has run, or the last N", ON_SESSION, 1, 2, NEED_RUNNING,
	 verb_history},
	{"check", "[-p PROFILE] CODE | -f FILE | -", "say whether code compiles and keeps its profile's rules",
	 WITH_PROFILE | WITH_FILE, 0, 1, NEED_NOTHING, verb_check},
	{"undo", "ID [N] [--keep-files]", "go back to the state before a session's last cell, or N states",
	 ON_SESSION | WITH_BACK, 1, 2, NEED_RUNNING, verb_undo},
	{"checkpoint", "ID [NAME]", "keep the state a session is in", ON_SESSION, 1, 2, NEED_RUNNING,
	 verb_checkpoint},
	{"checkpoints", "ID", "list the states a session can go back to", ON_SESSION, 1, 1, NEED_RUNNING,
	 verb_checkpoints},
	{"diff", "ID [FROM [TO]]", "list what changed in a session, in files and in variables, between two states",
	 ON_SESSION, 1, 3, NEED_RUNNING, verb_diff},
	{"restore", "ID NAME [--keep-files]", "go back to a kept state, by name or by the number of its cell",
	 ON_SESSION | WITH_BACK, 2, 2, NEED_RUNNING, verb_restore},
	{"drop", "ID NAME", "forget a kept state", ON_SESSION, 2, 2, NEED_RUNNING, verb_drop},
	{"branch", "ID NEW [--from NAME] [--files | --share] [--at-call]",
	 "make a session that goes on from the state of another", ON_SESSION | WITH_BRANCH, 2, 2, NEED_RUNNING,
	 verb_branch},
	{"save", "ID", "save a session's variables, so that they outlive it", ON_SESSION, 1, 1, NEED_RUNNING,
	 verb_save},
	{"load", "ID", "load what was saved of a session", ON_SESSION, 1, 1, NEED_RUNNING, verb_load},
	{"saves", "[list] | show ID | rm ID", "list, show or delete what is saved of sessions", 0, 0, 2,
	 NEED_RUNNING, verb_saves},
	{"put", "ID FILE [DEST]", "copy a file or a directory into a session", ON_SESSION, 2, 3, NEED_RUNNING,
	 verb_put},
	{"get", "ID PATH [DEST]", "copy a file or a directory out of a session; - for stdout", ON_SESSION, 2, 3,
	 NEED_RUNNING, verb_get},
	{"files", "ID [PATH]", "list the files of a session", ON_SESSION, 1, 2, NEED_RUNNING, verb_files},
	{"copy-in", "ID HOSTPATH [DEST]",
	 "copy a file of the daemon's host into a session, if the profile's import allows it", ON_SESSION, 2, 3,
	 NEED_RUNNING, verb_copy_in},
	{"mcp", "", "serve sessions as tools, over stdin and stdout, by the Model Context Protocol",
	 WITH_SESSION | WITH_PROFILE | WITH_TOOLS | WITH_CONFIG | WITH_INSTRUCTIONS | WITH_SERVERS | WITH_ALLOW, 0,
	 0, NEED_NOTHING, verb_mcp},
	{"jupyter", "install | run -f FILE", "install sessions as a kernel for notebooks, or be that kernel",
	 WITH_SESSION | WITH_PROFILE | WITH_FILE | WITH_KERNEL, 1, 1, NEED_NOTHING, verb_jupyter},
	{"serve", "", "serve sessions over HTTP", WITH_HTTP, 0, 0, NEED_NOTHING, verb_serve},
	{"token", "add NAME | list | revoke NAME", "say who may use lair serve", WITH_TOKEN | WITH_PROFILE, 1, 2,
	 NEED_NOTHING, verb_token},
	{"tools", "", "print the schemas of the tools of lair mcp, for the API of a model",
	 WITH_TOOLS | WITH_FORMAT | WITH_PROFILE | WITH_INSTRUCTIONS, 0, 0, NEED_NOTHING, verb_tools},
	{"servers", "FILE", "list the tools of the MCP servers in FILE, as functions", WITH_ALLOW | WITH_SERVE, 1,
	 1, NEED_NOTHING, verb_servers},
	{"packages", "[prune]",
	 "list the packages that are installed, and who has them; prune removes what nobody has", 0, 0, 1,
	 NEED_RUNNING, verb_packages},
	{"start", "", "start the daemon", 0, 0, 0, NEED_STARTED, verb_start},
	{"stop", "", "end all sessions and the daemon", 0, 0, 0, NEED_NOTHING, verb_stop},
	{"reload", "", "have the daemon read its settings again; sessions keep those they were opened with", 0, 0,
	 0, NEED_RUNNING, verb_reload},
	{"upgrade", "", "have the daemon go on with the build that is installed now; sessions stay", 0, 0, 0,
	 NEED_NOTHING, verb_upgrade},
	{"status", "", "say whether the daemon runs, and how it fares", 0, 0, 0, NEED_NOTHING, verb_status},
	{"doctor", "", "say how strong a cage this host gives, and what would make it stronger", 0, 0, 0,
	 NEED_NOTHING, verb_doctor},
	{"version", "", "say which version this is", 0, 0, 0, NEED_NOTHING, verb_version},
	{"words", "", NULL, 0, 0, INT_MAX, NEED_NOTHING, verb_words},
	{"help", "[VERB]", "say what a verb does", 0, 0, 1, NEED_NOTHING, verb_help},
};

const struct verb *verb_at(size_t i)
{
	return i < ARRAY_SIZE(verbs) ? &verbs[i] : NULL;
}

const struct verb *verb_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static void help_all(FILE *out)
{
	fputs("lair runs Python in sessions that remember, each in a cage of its own.\n\nusage: lair VERB "
	      "[FLAG]...\n\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verbs[i].summary)
			fprintf(out, "  %-11s %s\n", verbs[i].name, verbs[i].summary);
	fputs("\nFlags of every verb:\n", out);
	flags_print(NULL, out);
	fputs("\nlair VERB --help says more. lair exec exits with the returncode of the cell; 2 is a wrong command "
	      "line, "
	      "125 trouble with the daemon.\n",
	      out);
}

static void help_verb(const struct verb *verb, FILE *out)
{
	fprintf(out, "lair %s: %s\n\nusage: lair %s%s%s [FLAG]...\n\n", verb->name,
		verb->summary ? verb->summary : "for shells", verb->name, *verb->usage ? " " : "", verb->usage);
	flags_print(verb, out);
}

/* How many insertions, deletions, changes and swaps of neighbours turn one word into the other. Both must be
 * short. */
static unsigned distance(const char *a, const char *b)
{
	enum { MAX_LENGTH = 15 };
	unsigned d[MAX_LENGTH + 1][MAX_LENGTH + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > MAX_LENGTH || m > MAX_LENGTH)
		return UINT32_MAX;
	for (size_t i = 0; i <= n; i++) {
		for (size_t j = 0; j <= m; j++) {
			if (i == 0 || j == 0) {
				d[i][j] = (unsigned)(i + j);
				continue;
			}
			d[i][j] = MIN(MIN(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[n][m];
}

static int verb_unknown(const struct cli *cli, const char *name)
{
	const struct verb *closest = NULL;
	unsigned least = 3;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		unsigned d = distance(name, verbs[i].name);

		if (d < least) {
			least = d;
			closest = &verbs[i];
		}
	}
	if (closest)
		return cli_usage(cli, "there is no verb \"%s\"; did you mean %s?", name, closest->name);
	return cli_usage(cli, "there is no verb \"%s\"", name);
}

static int verb_help(struct cli *cli)
{
	const struct verb *verb;

	if (cli->n_args == 0) {
		help_all(stdout);
		return 0;
	}
	verb = verb_named(cli->args[0]);
	if (!verb)
		return verb_unknown(cli, cli->args[0]);
	help_verb(verb, stdout);
	return 0;
}

/* A wrong --config is an error even if a daemon runs and does not need it. A file that the environment names is not
 * checked, because maybe only the daemon can read it. */
static int config_check(const struct cli *cli)
{
	if (!cli->config || cli->config == getenv("LAIR_CONFIG") || access(cli->config, R_OK) == 0)
		return 0;
	return cli_usage(cli, "--config %s: %s", cli->config, strerror(errno));
}

static int color_check(struct cli *cli)
{
	static const char *const known[] = {"auto", "always", "never"};
	bool valid = !cli->color;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		valid |= cli->color && strcmp(cli->color, known[i]) == 0;
	if (!valid)
		return cli_usage(cli, "--color: expected always, never or auto; got \"%s\"", cli->color);
	terminal_init(&cli->terminal, cli->color);
	return 0;
}

static int run(struct cli *cli, int argc, char *argv[])
{
	int r;

	r = flags_parse(cli, NULL, argc, argv);
	if (r)
		return r;
	if (cli->version)
		return verb_version(cli);
	if (cli->n_args == 0) {
		help_all(stdout);
		return 0;
	}
	cli->verb = verb_named(cli->args[0]);
	if (!cli->verb)
		return verb_unknown(cli, cli->args[0]);
	r = flags_parse(cli, cli->verb, cli->n_args, cli->args);
	if (!r && cli->help) {
		help_verb(cli->verb, stdout);
		return 0;
	}
	if (!r)
		r = cli_args_check(cli);
	if (!r)
		r = cli_names(cli);
	if (!r)
		r = config_check(cli);
	if (!r)
		r = color_check(cli);
	if (!r)
		r = cli_connect(cli, cli->verb->need);
	return r ? r : cli->verb->fn(cli);
}

/* If one of these is closed, the next file that is opened would get its number and be taken for it. */
static void standard_fds_fill(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDWR);
}

int main(int argc, char *argv[])
{
	const char *config = getenv("LAIR_CONFIG");
	static struct event_loop loop;
	struct cli cli = {.config = config && *config ? config : NULL, .loop = &loop};
	int status;

	standard_fds_fill();
	status = event_loop_init(&loop) ? cli_fail(&cli, "error", "%s", strerror(errno)) : run(&cli, argc, argv);
	lair_free(cli.lair);
	event_loop_deinit(&loop);
	/* If the output could not be written, that is trouble, too. */
	if (fflush(stdout) != 0 && status == 0)
		status = EXIT_TROUBLE;
	return status;
}
