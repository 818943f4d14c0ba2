/* The flags: one table, for parsing and for help. */
#include "cli.h"

#include "base/text.h"
#include "lib/options.h"

#include <ctype.h>
#include <getopt.h>
#include <math.h>

enum flag_type { FLAG_ON, FLAG_TEXT, FLAG_SECONDS, FLAG_NUMBER, FLAG_LIST, FLAG_WORDS, FLAG_SETTINGS };

struct flag {
	char letter;
	enum flag_type type;
	const char *name, *argument;
	size_t offset;
	uint64_t with; /* 0: every verb takes it; with ALL_BUT: those without any of these */
	const char *help;
};

#define ALL_BUT (1ull << 63)
#define PLACE(member) offsetof(struct cli, member)

static const struct flag flags[] = {
	{'s', FLAG_TEXT, "session", "ID", PLACE(session), WITH_SESSION, "the session; made if it does not exist"},
	{'f', FLAG_TEXT, "file", "FILE", PLACE(file), WITH_FILE, "take the code from FILE, - for stdin"},
	{'f', FLAG_TEXT, "file", "FILE", PLACE(file), WITH_KERNEL, "run: the connection file"},
	{'f', FLAG_ON, "follow", NULL, PLACE(follow), WITH_LOG, "and what comes, until Ctrl-C"},
	{'p', FLAG_TEXT, "profile", "PROFILE", PLACE(profile), WITH_PROFILE, "the profile of new sessions"},
	{'p', FLAG_TEXT, "profile", "PROFILE", PLACE(profile), WITH_RULES, "the profile whose rules it must keep"},
	{'p', FLAG_TEXT, "profile", "PROFILES", PLACE(profile), WITH_TOKEN,
	 "the profiles that it may name, the default first; a,b,c"},
	{'D', FLAG_LIST, "dir", "DIR[:rw]", PLACE(directories), WITH_ASKED,
	 "show DIR in the session, read-only unless :rw; it starts in the first"},
	{'G', FLAG_TEXT, "memory", "SIZE", PLACE(memory), WITH_ASKED, "the session's memory; 512M, 4G"},
	{'Z', FLAG_TEXT, "cpus", "N", PLACE(cpus), WITH_ASKED, "its processors; 2, 1.5"},
	{'Q', FLAG_TEXT, "network", "WHAT", PLACE(network), WITH_ASKED, "on, off, or tcp:443,8080"},
	{'t', FLAG_SECONDS, "timeout", "TIME", PLACE(timeout), WITH_CELL,
	 "stop a cell after this time; 90, 1.5s, 200ms, 5m"},
	{'t', FLAG_SECONDS, "timeout", "TIME", PLACE(timeout), ALL_BUT | WITH_CELL | AT_PROMPT,
	 "wait this long for the answer; 90, 1.5s, 200ms, 5m"},
	{'j', FLAG_ON, "json", NULL, PLACE(json), 0, "answer with one JSON document on stdout"},
	{'l', FLAG_ON, "stream", NULL, PLACE(stream), WITH_STREAM,
	 "with --json: one document a line, output first, as it comes"},
	{'O', FLAG_TEXT, "sort", "COLUMN", PLACE(sort), WITH_TOP, "cpu, memory, disk, age, idle, owner or name"},
	{'1', FLAG_ON, "once", NULL, PLACE(once), WITH_TOP, "one list, of a second, and no more"},
	{'l', FLAG_ON, "long", NULL, PLACE(longer), WITH_LONG, "owner, CPU, disk and limits, too"},
	{'b', FLAG_TEXT, "from", "NAME", PLACE(from), WITH_BRANCH,
	 "from this checkpoint, not from the state of now"},
	{'F', FLAG_ON, "files", NULL, PLACE(files), WITH_BRANCH,
	 "on files of its own; with files = restore that is so anyway"},
	{'H', FLAG_ON, "share", NULL, PLACE(share), WITH_BRANCH, "on the same files"},
	{'B', FLAG_ON, "keep-files", NULL, PLACE(keep_files), WITH_BACK, "files stay as they are"},
	{'A', FLAG_ON, "at-call", NULL, PLACE(at_call), WITH_BRANCH,
	 "in the middle of the cell that waits for calls; both go on"},
	{'k', FLAG_TEXT, "key", "KEY", PLACE(key), WITH_KEY, "the key of the cell"},
	{'k', FLAG_TEXT, "key", "KEY", PLACE(key), WITH_OPTIONS,
	 "a key for the cell; if it was used, nothing is run, and that result is given"},
	{'i', FLAG_TEXT, "figures", "DIR", PLACE(figures), WITH_FIGURES, "save the figures it shows in DIR"},
	{'y', FLAG_TEXT, "color", "WHEN", PLACE(color), WITH_COLOR,
	 "always, never, or auto: on a terminal, unless NO_COLOR is set"},
	{'u', FLAG_TEXT, "cursor", "N", PLACE(cursor), WITH_CURSOR,
	 "the cursor is after N characters, not at the end"},
	{'w', FLAG_ON, "source", NULL, PLACE(source), WITH_SOURCE, "with its source"},
	{'x', FLAG_TEXT, "forget", "NAMES", PLACE(forget), WITH_FORGET, "delete these variables first; a,b,c"},
	{'K', FLAG_TEXT, "keep", "NAMES", PLACE(keep), WITH_KEEP,
	 "keep the interpreter, and of its variables these; a,b,c"},
	{'X', FLAG_ON, "kill", NULL, PLACE(kill), WITH_KILL,
	 "kill it, also if it does not react, and go back to the state before it"},
	{'I', FLAG_ON, "instructions", NULL, PLACE(instructions), WITH_INSTRUCTIONS,
	 "tell, as for a system prompt, how sessions work and what they have"},
	{'W', FLAG_SECONDS, "patience", "TIME", PLACE(patience), WITH_CONFIG,
	 "answer a call after this time, before its client gives up; 50s"},
	{'T', FLAG_TEXT, "tools", "SET", PLACE(tools), WITH_TOOLS,
	 "minimal, or full: undo, branch, diff, install, vars and files, too"},
	{'o', FLAG_TEXT, "format", "API", PLACE(format), WITH_FORMAT, "openai, anthropic or mcp"},
	{'P', FLAG_ON, "print-config", NULL, PLACE(print_config), WITH_CONFIG,
	 "print what goes into the configuration of a client, and serve nothing"},
	{'M', FLAG_TEXT, "servers", "FILE", PLACE(servers), WITH_SERVERS,
	 "the tools of the MCP servers that FILE names are functions of the cells"},
	{'A', FLAG_LIST, "allow", "PATTERN", PLACE(allow), WITH_ALLOW,
	 "functions that need no approval although they may change something; fs.write_*"},
	{'E', FLAG_ON, "serve", NULL, PLACE(serve), WITH_SERVE,
	 "for programs: answer calls, one JSON document a line, until stdin ends"},
	{'N', FLAG_LIST, "function", "NAME=COMMAND", PLACE(functions), WITH_FUNCTIONS,
	 "cells may call it: the command gets the arguments as JSON, and prints the value"},
	{'q', FLAG_LIST, "ask", "PATTERN", PLACE(ask), WITH_FUNCTIONS,
	 "somebody approves each call of these functions"},
	{'z', FLAG_LIST, "effect", "PATTERN", PLACE(effect), WITH_FUNCTIONS,
	 "these functions change something: after going back they are not repeated in silence"},
	{'Y', FLAG_ON, "approve", NULL, PLACE(approve), WITH_ANSWER, "let the call be done"},
	{'R', FLAG_TEXT, "refuse", "WHY", PLACE(refuse), WITH_ANSWER, "refuse it; the cell is told why"},
	{'U', FLAG_ON, "user", NULL, PLACE(user), WITH_KERNEL, "install it for this user; that is the default"},
	{'m', FLAG_ON, "sys-prefix", NULL, PLACE(sys_prefix), WITH_KERNEL,
	 "install it in the virtual environment in which this is called"},
	{'x', FLAG_TEXT, "prefix", "DIR", PLACE(prefix), WITH_KERNEL, "install it in DIR/share/jupyter/kernels"},
	{'d', FLAG_TEXT, "name", "NAME", PLACE(name), WITH_KERNEL, "the name of its directory; lair"},
	{'w', FLAG_ON, "by-path", NULL, PLACE(by_path), WITH_KERNEL,
	 "a session for each notebook, named after its path, which stays when the kernel ends"},
	{'L', FLAG_TEXT, "listen", "HOST:PORT", PLACE(listen), WITH_HTTP, "where to listen; 127.0.0.1:8888"},
	{'o', FLAG_TEXT, "tokens", "FILE", PLACE(tokens), WITH_HTTP | WITH_TOKEN,
	 "the file of tokens; lair token writes it, instead of $LAIR_TOKENS"},
	{'O', FLAG_TEXT, "origins", "ORIGINS", PLACE(origins), WITH_HTTP,
	 "pages of these sites may ask, too, instead of $LAIR_ORIGINS; https://a.example,http://localhost:3000"},
	{'x', FLAG_TEXT, "cert", "FILE", PLACE(certificate), WITH_HTTP, "TLS, with this certificate in PEM"},
	{'k', FLAG_TEXT, "cert-key", "FILE", PLACE(certificate_key), WITH_HTTP, "and its private key"},
	{'N', FLAG_TEXT, "sessions", "N", PLACE(sessions), WITH_TOKEN, "how many sessions at once"},
	{'q', FLAG_TEXT, "requests", "N", PLACE(requests), WITH_TOKEN, "how many requests at once"},
	{'r', FLAG_TEXT, "rate", "N", PLACE(rate), WITH_TOKEN, "how many requests a second"},
	{'S', FLAG_TEXT, "socket", "PATH", PLACE(socket), 0, "the daemon's socket, instead of $LAIR_SOCKET"},
	{'c', FLAG_TEXT, "config", "FILE", PLACE(config), 0,
	 "sessions.conf for a daemon that has to be started, instead of $LAIR_CONFIG"},
	{'n', FLAG_ON, "no-start", NULL, PLACE(no_start), 0, "do not start a daemon if none answers"},
	{'h', FLAG_ON, "help", NULL, PLACE(help), 0, "say what the verb does"},
	{'V', FLAG_ON, "version", NULL, PLACE(version), 0, "say which version this is"},
};

#define N_FLAGS ARRAY_SIZE(flags)
#define FLAGS_MAX (N_FLAGS + EXEC_OPTIONS_MAX)

static struct flag flag_of_option(const struct exec_option *option)
{
	static const enum flag_type types[] = {
		[OPTION_FLAG] = FLAG_ON,   [OPTION_SECONDS] = FLAG_SECONDS, [OPTION_NUMBER] = FLAG_NUMBER,
		[OPTION_TEXT] = FLAG_TEXT, [OPTION_WORDS] = FLAG_WORDS,	    [OPTION_SETTINGS] = FLAG_SETTINGS,
	};

	return (struct flag){.letter = option->letter,
			     .type = types[option->type],
			     .name = option->flag ? option->flag : option->name,
			     .argument = option->argument,
			     .offset = PLACE(options) + option->place,
			     .with = (option->doors & DOOR_EXEC ? (uint64_t)WITH_OPTIONS : 0) |
				     (option->doors & DOOR_PROMPT ? (uint64_t)WITH_PROMPT_OPTIONS : 0),
			     .help = option->help};
}

/* The flags in turn: those above, then those of the options of a cell. False after the last. */
static bool flag_at(struct flag *flag, size_t i)
{
	if (i >= N_FLAGS + n_exec_options)
		return false;
	*flag = i < N_FLAGS ? flags[i] : flag_of_option(&exec_options[i - N_FLAGS]);
	return true;
}

static bool flag_belongs(const struct flag *flag, const struct verb *verb)
{
	if (!flag->letter)
		return false;
	if (flag->with & ALL_BUT)
		return !verb || !(verb->flags & flag->with);
	if (flag->with == 0)
		return !verb || !(verb->flags & AT_PROMPT);
	return verb && (verb->flags & flag->with);
}

static bool seconds_parse(double *secondsp, const char *text)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
	char *end;
	double value;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	value = strtod(text, &end);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].unit) != 0)
			continue;
		*secondsp = value * units[i].factor;
		return isfinite(value) && *secondsp > 0;
	}
	return false;
}

static int list_add(struct cli *cli, struct cli_list *list, const struct flag *flag, const char *argument)
{
	if (list->n == CLI_LIST_MAX)
		return cli_usage(cli, "--%s: not more than %d", flag->name, CLI_LIST_MAX);
	list->items[list->n++] = argument;
	return 0;
}

/* The list of an option: the option itself points to its items. */
static struct cli_list *list_of(struct cli *cli, const char *const **place)
{
	for (size_t i = 0; i < cli->n_lists; i++)
		if (cli->lists[i].items == *place)
			return &cli->lists[i];
	if (cli->n_lists == CLI_OPTION_LISTS)
		abort();
	*place = cli->lists[cli->n_lists].items;
	return &cli->lists[cli->n_lists++];
}

static int flag_set(struct cli *cli, const struct flag *flag, const char *argument)
{
	void *place = (char *)cli + flag->offset;

	switch (flag->type) {
	case FLAG_ON:
		*(bool *)place = true;
		break;
	case FLAG_TEXT:
		*(const char **)place = argument ? argument : flag->name;
		break;
	case FLAG_SETTINGS:
		if (!strchr(argument, '=') || argument[0] == '=')
			return cli_usage(cli, "--%s: expected NAME=VALUE; got \"%s\"", flag->name, argument);
		return list_add(cli, list_of(cli, place), flag, argument);
	case FLAG_WORDS:
		return list_add(cli, list_of(cli, place), flag, argument);
	case FLAG_LIST:
		return list_add(cli, place, flag, argument);
	case FLAG_NUMBER:
		if (!text_number(argument, place))
			return cli_usage(cli, "--%s: expected a number; got \"%s\"", flag->name, argument);
		break;
	case FLAG_SECONDS:
		if (!seconds_parse(place, argument))
			return cli_usage(cli, "--%s: expected a time such as 90, 1.5s, 200ms, 5m or 1h; got \"%s\"",
					 flag->name, argument);
		break;
	}
	return 0;
}

/* Options for getopt_long: the flag's index travels in val. */
static void options_build(struct option options[FLAGS_MAX + 1], char letters[2 * FLAGS_MAX + 3],
			  const struct verb *verb)
{
	struct flag flag;
	size_t n = 0;

	*letters++ = verb ? ':' : '+';
	if (!verb)
		*letters++ = ':';
	for (size_t i = 0; flag_at(&flag, i); i++) {
		if (!flag_belongs(&flag, verb))
			continue;
		options[n++] = (struct option){
			.name = flag.name,
			.has_arg = flag.argument ? required_argument : no_argument,
			.val = flag.letter,
		};
		*letters++ = flag.letter;
		if (flag.argument)
			*letters++ = ':';
	}
	options[n] = (struct option){.name = NULL};
	*letters = '\0';
}

static bool flag_find(struct flag *flag, int letter, const struct verb *verb)
{
	for (size_t i = 0; flag_at(flag, i); i++)
		if (flag->letter == letter && flag_belongs(flag, verb))
			return true;
	return false;
}

int flags_parse(struct cli *cli, const struct verb *verb, int argc, char *argv[])
{
	char letters[2 * FLAGS_MAX + 3];
	struct option options[FLAGS_MAX + 1];
	struct flag flag;
	int letter, r;

	options_build(options, letters, verb);
	opterr = 0;
	optind = 0; /* 0 begins anew, and forgets the scan before */
	while ((letter = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		if (letter == ':')
			return cli_usage(cli, "%s needs an argument", argv[optind - 1]);
		if (letter == '?' && optopt && !flag_find(&flag, optopt, verb))
			return cli_usage(cli, "there is no flag -%c here%s", optopt,
					 isdigit(optopt) ? "; a number below zero comes after --" : "");
		if (letter == '?')
			return cli_usage(cli, "there is no flag %s here", argv[optind - 1]);
		r = flag_find(&flag, letter, verb) ? flag_set(cli, &flag, optarg) : EXIT_USAGE;
		if (r)
			return r;
	}
	cli->args = argv + optind;
	cli->n_args = argc - optind;
	return 0;
}

const char *flag_argument(const struct verb *verb, const char *word)
{
	struct flag flag;

	for (size_t i = 0; flag_at(&flag, i); i++)
		if (flag_belongs(&flag, verb) && word[0] == '-' &&
		    ((word[1] == flag.letter && !word[2]) || (word[1] == '-' && !strcmp(word + 2, flag.name))))
			return flag.argument;
	return NULL;
}

void flags_each(const struct verb *verb, void (*fn)(void *userdata, const char *name, const char *help),
		void *userdata)
{
	struct flag flag;

	for (size_t i = 0; flag_at(&flag, i); i++)
		if (flag_belongs(&flag, verb))
			fn(userdata, flag.name, flag.help);
}

void flags_print(const struct verb *verb, FILE *out)
{
	struct flag flag;

	for (size_t i = 0; flag_at(&flag, i); i++)
		if (flag_belongs(&flag, verb))
			fprintf(out, "  -%c, --%s%s%-*s %s\n", flag.letter, flag.name, flag.argument ? " " : "",
				(int)(14 - strlen(flag.name) - (flag.argument != NULL)),
				flag.argument ? flag.argument : "", flag.help);
}
