/* Completion for shells: one candidate a line, a tab and its description.
 * The line :files stands for the names of files. The shells are told nothing of errors: nobody has asked for a
 * command to be run. */
#include "cli.h"

/* The daemon is waited for so long. */
#define PATIENCE 2.0
#define FILES ":files"

struct line {
	char **words; /* after the program's name; the last is incomplete */
	int n;
	const struct verb *verb;
	bool unknown;	    /* there is no such verb */
	int first;	    /* where the session stands, if the verb is about one; -1: not there yet */
	int place;	    /* how many arguments of the verb come before the last word */
	const char *option; /* what the flag before the last word wants; or NULL */
};

/* Words of flags that take one of a few. */
static const struct {
	const char *argument, *words;
} choices[] = {{"WHEN", "always never auto"},
	       {"SET", "minimal full"},
	       {"API", "openai anthropic mcp"},
	       {"COLUMN", "cpu memory disk age idle owner name"}};

static void candidate(const struct line *line, const char *word, const char *what)
{
	const char *begun = line->words[line->n - 1];

	if (strncmp(word, begun, strlen(begun)) == 0)
		printf("%s\t%s\n", word, what);
}

static void candidates(const struct line *line, const char *words)
{
	for (size_t n; *words; words += n) {
		char word[32];

		words += strspn(words, " ");
		n = strcspn(words, " ");
		snprintf(word, sizeof(word), "%.*s", (int)MIN(n, sizeof(word) - 1), words);
		if (n > 0)
			candidate(line, word, "");
	}
}

static void verbs_offer(const struct line *line)
{
	const struct verb *verb;
	const char *alias;

	for (size_t i = 0; (verb = verb_at(i)); i++) {
		size_t cursor = 0;

		if (verb->summary)
			candidate(line, verb->name, verb->summary);
		while ((alias = verb_alias(verb, &cursor)))
			candidate(line, alias, verb->summary);
	}
}

static void flag_offer(void *userdata, const char *name, const char *help)
{
	char word[40];

	snprintf(word, sizeof(word), "--%s", name);
	candidate(userdata, word, help);
}

static bool connected(struct cli *cli)
{
	cli->timeout = PATIENCE;
	return cli_connect(cli, NEED_RUNNING) == 0;
}

static void sessions_offer(struct cli *cli, const struct line *line)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_session session;
	size_t cursor = 0;

	if (!connected(cli) || cli_wait(cli, lair_list(cli->lair, &call), &call))
		return;
	while (lair_next_session(lair_sessions(call), &cursor, &session)) {
		char name[CLI_NAME_SIZE], what[64];

		snprintf(name, sizeof(name), "%.*s", (int)session.session.size, session.session.data);
		snprintf(what, sizeof(what), "session, %.*s", (int)session.state.size, session.state.data);
		candidate(line, name, what);
	}
}

static void profiles_offer(struct cli *cli, const struct line *line)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_text profile;
	size_t cursor = 0;

	if (!connected(cli) || cli_wait(cli, lair_stats(cli->lair, &call), &call))
		return;
	while (lair_next_text(lair_counters(call)->profiles, &cursor, &profile)) {
		char name[128];

		snprintf(name, sizeof(name), "%.*s", (int)profile.size, profile.data);
		candidate(line, name, "profile");
	}
}

static void checkpoints_offer(struct cli *cli, const struct line *line)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_checkpoint checkpoint;
	size_t cursor = 0;

	if (line->first < 0 || !connected(cli) ||
	    cli_wait(cli, lair_checkpoints(cli->lair, &call, line->words[line->first]), &call))
		return;
	while (lair_next_checkpoint(lair_checkpoint_list(call), &cursor, &checkpoint)) {
		char name[160];

		if (checkpoint.name.data)
			snprintf(name, sizeof(name), "%.*s", (int)checkpoint.name.size, checkpoint.name.data);
		else
			snprintf(name, sizeof(name), "%llu", (unsigned long long)checkpoint.cell);
		candidate(line, name, "checkpoint");
	}
}

/* The candidates for a word of the usage, or of a flag's help. */
static void kind_offer(struct cli *cli, const struct line *line, const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++)
		if (!strcmp(kind, choices[i].argument))
			candidates(line, choices[i].words);
	if (!strcmp(kind, "ID"))
		sessions_offer(cli, line);
	else if (!strcmp(kind, "PROFILE"))
		profiles_offer(cli, line);
	else if (!strcmp(kind, "VERB"))
		verbs_offer(line);
	else if (!strcmp(kind, "FILE") || !strcmp(kind, "DEST") || !strcmp(kind, "DIR") || !strcmp(kind, "PATH"))
		puts(FILES);
	else if ((!strcmp(kind, "NAME") || !strcmp(kind, "FROM") || !strcmp(kind, "TO")) && line->verb &&
		 (line->verb->flags & ON_SESSION))
		checkpoints_offer(cli, line);
}

/* The word of the usage at this place, "ID" of "ID [NAME]"; "" if there is none. Only the first way to use a verb
 * counts. */
static void kind_of_place(char kind[static 32], const struct verb *verb, int place)
{
	const char *at = verb->usage, *end = strchrnul(at, '|');

	for (;; place--) {
		size_t n;

		at += strspn(at, " [");
		n = strcspn(at, " ]|");
		snprintf(kind, 32, "%.*s", at < end ? (int)MIN(n, (size_t)31) : 0, at);
		/* Flags in it, with what they take, are no places. */
		if (*kind == '-') {
			at += n;
			at += strspn(at, " ");
			if (*at && *at != '[' && at < end)
				at += strcspn(at, " ]");
			place++;
			continue;
		}
		if (place <= 0 || !*kind)
			return;
		at += n + (at[n] == ']');
	}
}

/* One word that is whole. */
static void word_read(struct line *line, struct cli *cli, int i)
{
	const char *word = line->words[i];
	const char *argument = *word == '-' ? flag_argument(line->verb, word) : NULL, *flag;

	if (line->option) {
		/* Another socket is where to look. */
		if (i > 0 && (!strcmp(line->words[i - 1], "-S") || !strcmp(line->words[i - 1], "--socket")))
			cli->socket = word;
		line->option = NULL;
	} else if (*word == '-') {
		line->option = argument;
	} else if (!line->verb) {
		line->verb = verb_named(word, &flag);
		line->unknown |= !line->verb;
	} else if (line->place++ == 0) {
		line->first = i;
	}
}

int verb_words(struct cli *cli)
{
	struct line line = {.words = cli->args, .n = cli->n_args, .first = -1};
	char kind[32];

	if (line.n == 0 || !freopen("/dev/null", "we", stderr))
		return 0;
	for (int i = 0; i < line.n - 1; i++)
		word_read(&line, cli, i);
	if (line.option) {
		kind_offer(cli, &line, line.option);
	} else if (*line.words[line.n - 1] == '-') {
		flags_each(line.verb, flag_offer, &line);
	} else if (!line.verb && !line.unknown) {
		verbs_offer(&line);
	} else if (line.verb) {
		kind_of_place(kind, line.verb, line.place);
		kind_offer(cli, &line, kind);
	}
	return 0;
}
