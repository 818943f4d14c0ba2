/* lair: the verbs, as a table. */
#include "cli.h"

#include <fcntl.h>
#include <limits.h>

static int verb_help(struct cli *cli);

static const struct verb verbs[] = {
	{"exec", "[-s ID] CODE | -f FILE [ARG...] | - [ARG...]", "run code in a session, or in one made for it",
	 WITH_SESSION | WITH_PROFILE | WITH_CELL | WITH_FILE | WITH_STREAM | WITH_FIGURES | WITH_OPTIONS |
		 WITH_COLOR | WITH_FUNCTIONS | WITH_SERVERS | WITH_ALLOW | WITH_ASKED,
	 0, INT_MAX, NEED_NOTHING, verb_exec},
	{"install", "ID PACKAGE...", "install packages in a session; its variables stay, and undo takes them back",
	 ON_SESSION | WITH_CELL | WITH_PROFILE | WITH_COLOR, 2, INT_MAX, NEED_STARTED, verb_install},
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
	 WITH_SESSION | WITH_PROFILE | WITH_CELL | WITH_FIGURES | WITH_PROMPT_OPTIONS | WITH_COLOR |
		 WITH_FUNCTIONS | WITH_SERVERS | WITH_ALLOW | WITH_ASKED,
	 0, 0, NEED_STARTED, verb_repl},
	{"open", "ID", "make a session, or see that it is there", ON_SESSION | WITH_PROFILE | WITH_ASKED, 1, 1,
	 NEED_STARTED, verb_open},
	{"top", "", "watch your sessions, the busiest first", WITH_TOP, 0, 0, NEED_RUNNING, verb_top},
	{"ls", "", "list your sessions", WITH_LONG, 0, 0, NEED_RUNNING, verb_ls},
	{"info", "ID", "show all about a session", ON_SESSION, 1, 1, NEED_RUNNING, verb_info},
	{"interrupt", "ID", "interrupt the cell that a session runs; kill: --kill", ON_SESSION | WITH_KILL, 1, 1,
	 NEED_RUNNING, verb_interrupt},
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
	 WITH_RULES | WITH_FILE, 0, 1, NEED_NOTHING, verb_check},
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
	 WITH_SESSION | WITH_PROFILE | WITH_CELL | WITH_TOOLS | WITH_CONFIG | WITH_INSTRUCTIONS | WITH_SERVERS |
		 WITH_ALLOW,
	 0, 0, NEED_NOTHING, verb_mcp},
	{"jupyter", "install | run -f FILE", "install sessions as a kernel for notebooks, or be that kernel",
	 WITH_SESSION | WITH_PROFILE | WITH_KERNEL | WITH_ASKED, 1, 1, NEED_NOTHING, verb_jupyter},
	{"serve", "", "serve sessions over HTTP", WITH_HTTP, 0, 0, NEED_NOTHING, verb_serve},
	{"token", "add NAME | list | revoke NAME", "say who may use lair serve", WITH_TOKEN, 1, 2, NEED_NOTHING,
	 verb_token},
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
	{"logs", "", "print the log of a daemon that lair has started", WITH_LOG, 0, 0, NEED_NOTHING, verb_logs},
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

/* The verbs as people look for them: each is in one group. */
static const struct {
	const char *title, *example, *verbs;
} groups[] = {
	{"Run code", "lair exec -s demo 'x = 41'", "exec repl install check attach results"},
	{"Sessions", "lair ls", "open ls info top interrupt reset close"},
	{"Look into a session", "lair vars demo", "vars inspect complete history files put get copy-in"},
	{"Go back, branch, save", "lair undo demo",
	 "undo diff checkpoint checkpoints restore drop branch save load saves"},
	{"For other programs", "lair mcp --print-config", "mcp jupyter serve token tools servers calls answer"},
	{"The daemon", "lair status", "start stop status logs reload upgrade packages doctor version help"},
};

static void help_line(FILE *out, const char *name)
{
	const char *flag, *alias, *before = " (also ";
	const struct verb *verb = verb_named(name, &flag);
	size_t cursor = 0;

	fprintf(out, "  %-11s %s", verb->name, verb->summary);
	for (; (alias = verb_alias(verb, &cursor)); before = ", ")
		fprintf(out, "%s%s", before, alias);
	fputs(*before == ',' ? ")\n" : "\n", out);
}

static void help_all(FILE *out)
{
	fputs("lair runs Python in sessions that remember, each in a cage of its own.\n\nusage: lair VERB "
	      "[FLAG]...\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		char words[160], *rest = NULL;

		fprintf(out, "\n%s, as in: %s\n", groups[i].title, groups[i].example);
		snprintf(words, sizeof(words), "%s", groups[i].verbs);
		for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
			help_line(out, word);
	}
	fputs("\nFlags of every verb:\n", out);
	flags_print(NULL, out);
	fputs("\nlair VERB --help says more. lair exec exits with the returncode of the cell; 2 is a wrong command "
	      "line, "
	      "125 trouble with the daemon.\n",
	      out);
}

static void help_verb(const struct verb *verb, FILE *out)
{
	const char *alias, *before = "\nalso: lair ";
	size_t cursor = 0;

	fprintf(out, "lair %s: %s\n\nusage: lair %s%s%s [FLAG]...\n", verb->name,
		verb->summary ? verb->summary : "for shells", verb->name, *verb->usage ? " " : "", verb->usage);
	for (; (alias = verb_alias(verb, &cursor)); before = ", ")
		fprintf(out, "%s%s", before, alias);
	fprintf(out, "%s\n", cursor && *before == ',' ? "\n" : "");
	flags_print(verb, out);
}

static int verb_help(struct cli *cli)
{
	const struct verb *verb;
	const char *flag;

	if (cli->n_args == 0) {
		help_all(stdout);
		return 0;
	}
	verb = verb_named(cli->args[0], &flag);
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

/* An alias may stand for a verb with a flag. */
static int verb_flags(struct cli *cli, const char *flag)
{
	char *alias[] = {cli->args[0], (char *)(uintptr_t)flag, NULL}, **args = cli->args;
	int r, n_args = cli->n_args;

	r = flag ? flags_parse(cli, cli->verb, 2, alias) : 0;
	return r ? r : flags_parse(cli, cli->verb, n_args, args);
}

static int run(struct cli *cli, int argc, char *argv[])
{
	const char *flag;
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
	cli->verb = verb_named(cli->args[0], &flag);
	if (!cli->verb)
		return verb_unknown(cli, cli->args[0]);
	r = verb_flags(cli, flag);
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
	asked_deinit(&cli.asked);
	event_loop_deinit(&loop);
	/* If the output could not be written, that is trouble, too. */
	if (fflush(stdout) != 0 && status == 0)
		status = EXIT_TROUBLE;
	return status;
}
