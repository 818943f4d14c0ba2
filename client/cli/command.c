/* The commands of a prompt: verbs, as a table, on the session of the prompt. */
#include "command.h"

#include "base/json.h"
#include "base/text.h"
#include "shorthand.h"

#include <ctype.h>

enum { WORDS_MAX = 16 }; /* more than any command takes */

static int help(struct cli *cli);

/* The numbers of arguments do not count the session, which is put in front. */
static const struct verb commands[] = {
	{"vars", "", "list the variables; takes --forget a,b", AT_PROMPT | WITH_FORGET, 0, 0, NEED_NOTHING,
	 verb_vars},
	{"who", "", "list their names", AT_PROMPT, 0, 0, NEED_NOTHING, verb_who},
	{"inspect", "NAME", "say what a name is; also ?NAME or NAME?, and with ?? its source",
	 AT_PROMPT | PAGED | WITH_SOURCE, 1, 1, NEED_NOTHING, verb_inspect},
	{"history", "[N]", "list the cells that have run, or the last N", AT_PROMPT | PAGED, 0, 1, NEED_NOTHING,
	 verb_history},
	{"reset", "", "begin anew; takes --keep a,b", AT_PROMPT | WITH_KEEP, 0, 0, NEED_NOTHING, verb_reset},
	{"undo", "[N]", "go back to the state before the last cell, or N states", AT_PROMPT, 0, 1, NEED_NOTHING,
	 verb_undo},
	{"checkpoint", "[NAME]", "keep the state of now, under a name if there is one", AT_PROMPT, 0, 1,
	 NEED_NOTHING, verb_checkpoint},
	{"checkpoints", "", "list the states that are kept", AT_PROMPT, 0, 0, NEED_NOTHING, verb_checkpoints},
	{"diff", "[FROM [TO]]", "list what changed, in files and in variables, between two states", AT_PROMPT, 0, 2,
	 NEED_NOTHING, verb_diff},
	{"restore", "NAME", "go back to a kept state, by name or by the number of its cell", AT_PROMPT, 1, 1,
	 NEED_NOTHING, verb_restore},
	{"drop", "NAME", "forget a kept state", AT_PROMPT, 1, 1, NEED_NOTHING, verb_drop},
	{"branch", "NEW", "grow a session from this one and go on in it; takes --from NAME, --files, --share",
	 AT_PROMPT | WITH_BRANCH, 1, 1, NEED_NOTHING, verb_branch},
	{"help", "", "say this", AT_PROMPT | PAGED, 0, 0, NEED_NOTHING, help},
};

static int help_json(void)
{
	json_t *array = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "name", commands[i].name, "usage",
						       commands[i].usage, "summary", commands[i].summary));
	for (size_t i = 0; i < n_shorthands; i++)
		json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "name", shorthands[i].name, "usage",
						       shorthands[i].usage, "summary", shorthands[i].summary));
	return json_print(json_pack("{s:o}", "commands", array));
}

static void help_line(const char *sign, const char *name, const char *usage, const char *summary)
{
	printf("%s%s%s%-*s %s\n", sign, name, *usage ? " " : "",
	       (int)(20 - strlen(sign) - strlen(name) - (*usage != '\0')), usage, summary);
}

static int help(struct cli *cli)
{
	if (cli->json)
		return help_json();
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		help_line("%", commands[i].name, commands[i].usage, commands[i].summary);
	for (size_t i = 0; i < n_shorthands; i++)
		help_line("", shorthands[i].name, shorthands[i].usage, shorthands[i].summary);
	puts("Where IPython is loaded (preload = IPython), the last five and other magics are its own, and it "
	     "keeps\n"
	     "In, Out, _, __ and _7.");
	puts("Anything else is Python; an empty line ends a block, a paste is one cell. Ctrl-C interrupts, Ctrl-D "
	     "leaves.");
	return 0;
}

/* Whether @text is nothing but a dotted name and one or two question marks. */
static bool is_question(struct lair_text text)
{
	size_t at = 0, marks = 0;

	while (at < text.size && (isalnum((unsigned char)text.data[at]) || text.data[at] == '_' ||
				  text.data[at] == '.' || (text.data[at] & 0x80)))
		at++;
	for (; at > 0 && at < text.size && text.data[at] == '?'; at++)
		marks++;
	while (at < text.size && isspace((unsigned char)text.data[at]))
		at++;
	return at == text.size && (marks == 1 || marks == 2);
}

/* Magics of IPython that people use most; the session has more. */
static const char *const magics[] = {"%run",	  "%pip",   "%matplotlib", "%load_ext",	 "%autoreload", "%prun",
				     "%whos",	  "%pwd",   "%ls",	   "%lsmagic",	 "%%timeit",	"%%time",
				     "%%capture", "%%bash", "%%html",	   "%%writefile"};

void commands_list(const char *names[static COMMANDS_MAX + 1])
{
	static char words[ARRAY_SIZE(commands)][16];
	size_t n = 0;

	_Static_assert(ARRAY_SIZE(commands) + ARRAY_SIZE(magics) + 8 <= COMMANDS_MAX, "room for all");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		snprintf(words[i], sizeof(words[i]), "%%%s", commands[i].name);
		names[n++] = words[i];
	}
	for (size_t i = 0; i < n_shorthands; i++)
		if (shorthands[i].name[0] == '%')
			names[n++] = shorthands[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		names[n++] = magics[i];
	names[n] = NULL;
}

static const struct verb *command_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* Whether the first word of @text, which begins with %, is one of the commands. Others are magics of IPython, which
 * the session answers. */
static bool names_command(struct lair_text text)
{
	char name[16];
	size_t size = 1;

	while (size < text.size && !isspace((unsigned char)text.data[size]))
		size++;
	if (size == 1)
		return true;
	snprintf(name, sizeof(name), "%.*s", (int)MIN(size - 1, sizeof(name) - 1), text.data + 1);
	return command_find(name);
}

bool command_is(struct lair_text text)
{
	while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
		text.data++;
		text.size--;
	}
	if (text.size > 0 && text.data[0] == '%')
		return names_command(text);
	return text.size > 0 && (strchr("!?", text.data[0]) || is_question(text));
}

static int session_follow(const struct cli *cli, char **sessionp)
{
	char *branch = strdup(cli->args[1]);

	if (!branch)
		return cli_fail(cli, "error", "out of memory");
	if (!cli->json)
		printf("From here on in session \"%s\"; \"%s\" keeps running.\n", branch, *sessionp);
	free(*sessionp);
	*sessionp = branch;
	return 0;
}

/* What fits on the screen, less prints as it is. */
static const char pager[] = "LESS=${LESS-FRX}; export LESS; p=${PAGER:-less}\n"
			    "command -v \"${p%% *}\" >/dev/null || p=cat; exec $p";

static int run_paged(struct cli *cli)
{
	bool wanted = (cli->verb->flags & PAGED) && !cli->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	FILE *to = wanted ? popen(pager, "we") : NULL;
	int r, kept = to ? dup(STDOUT_FILENO) : -1;

	fflush(stdout);
	if (kept >= 0)
		(void)dup2(fileno(to), STDOUT_FILENO);
	r = cli->verb->fn(cli);
	fflush(stdout);
	if (kept >= 0)
		(void)dup2(kept, STDOUT_FILENO);
	fd_close(kept);
	/* One may leave a pager before the end. */
	if (to)
		(void)pclose(to);
	clearerr(stdout);
	return r;
}

static int words_run(const struct cli *prompt, char **sessionp, char *words[], int n)
{
	struct cli cli = *prompt;
	int r;

	cli.timeout = 0; /* the timeout of the prompt is for its cells */
	cli.verb = n ? command_find(words[0]) : NULL;
	if (!cli.verb)
		return cli_usage(&cli, "expected a command; %%help lists them");
	r = flags_parse(&cli, cli.verb, n, words);
	if (!r)
		r = cli_args_check(&cli);
	if (!r)
		r = cli_names(&cli);
	if (r)
		return r;
	/* In the word before the arguments stood the command or a flag, which have been read. So there is room for
	 * the session. */
	*--cli.args = *sessionp;
	cli.n_args++;
	r = run_paged(&cli);
	return r || cli.verb->fn != verb_branch ? r : session_follow(&cli, sessionp);
}

/* ?NAME, NAME? and NAME?? become the command that they stand for; other commands lose their sign. New. */
static char *line_of(struct lair_text text)
{
	char *line = NULL, *copy = strndup(text.data, text.size), *mark = copy;
	int marks = 0;

	if (!copy)
		return NULL;
	if (copy[strspn(copy, " \t")] == '%') {
		*strchr(copy, '%') = ' ';
		return copy;
	}
	while ((mark = strchr(mark, '?'))) {
		*mark = ' ';
		marks++;
	}
	if (asprintf(&line, "inspect %s %s", marks > 1 ? "--source" : "", copy) < 0)
		line = NULL;
	free(copy);
	return line;
}

int command_run(const struct cli *cli, char **sessionp, struct lair_text text)
{
	_cleanup_(freep) char *line = line_of(text);
	char *words[WORDS_MAX + 1];
	int r;

	if (!line)
		return cli_fail(cli, "error", "out of memory");
	r = words_run(cli, sessionp, words, text_words(words, WORDS_MAX, line));
	fflush(stdout);
	return r;
}
