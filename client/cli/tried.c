/* Words that people try first, out of habit from shells, docker, git and IPython. An alias runs its verb; any other
 * word is an error that names the verb. */
#include "cli.h"

static const struct alias {
	const char *word, *verb, *flag;
} aliases[] = {
	{"run", "exec", NULL},
	{"rm", "close", NULL},
	{"ps", "ls", NULL},
	{"kill", "interrupt", "--kill"},
};

static const struct {
	const char *word, *verb;
} tried[] = {
	{"list", "ls"},
	{"sessions", "ls"},
	{"new", "open"},
	{"create", "open"},
	{"python", "repl"},
	{"ipython", "repl"},
	{"shell", "repl"},
	{"bash", "repl"},
	{"sh", "repl"},
	{"console", "repl"},
	{"prompt", "repl"},
	{"eval", "exec"},
	{"delete", "close"},
	{"del", "close"},
	{"remove", "close"},
	{"destroy", "close"},
	{"end", "close"},
	{"exit", "close"},
	{"quit", "close"},
	{"describe", "info"},
	{"show", "info"},
	{"restart", "reset"},
	{"cancel", "interrupt"},
	{"jobs", "results"},
	{"wait", "attach"},
	{"stats", "top"},
	{"log", "logs"},
	{"pip", "install"},
	{"add", "install"},
	{"env", "vars"},
	{"who", "vars"},
	{"commit", "checkpoint"},
	{"snapshot", "checkpoint"},
	{"rollback", "undo"},
	{"revert", "undo"},
	{"checkout", "restore"},
	{"fork", "branch"},
	{"clone", "branch"},
	{"cp", "put"},
	{"upload", "put"},
	{"push", "put"},
	{"download", "get"},
	{"pull", "get"},
	{"cat", "get"},
	{"notebook", "jupyter"},
	{"lab", "jupyter"},
	{"http", "serve"},
	{"config", "reload"},
	{"update", "upgrade"},
	/* These are verbs that are about the daemon, and take no session. */
	{"start", "open"},
	{"stop", "close"},
	{"status", "info"},
	{"logs", "history"},
	{"ls", "files"},
	{"top", "info"},
};

const struct verb *verb_named(const char *name, const char **flagp)
{
	const struct verb *verb;

	*flagp = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
		if (strcmp(aliases[i].word, name) != 0)
			continue;
		*flagp = aliases[i].flag;
		name = aliases[i].verb;
		break;
	}
	for (size_t i = 0; (verb = verb_at(i)); i++)
		if (strcmp(verb->name, name) == 0)
			return verb;
	return NULL;
}

const char *verb_alias(const struct verb *verb, size_t *cursor)
{
	while (*cursor < ARRAY_SIZE(aliases)) {
		const struct alias *at = &aliases[(*cursor)++];

		if (strcmp(at->verb, verb->name) == 0)
			return at->word;
	}
	return NULL;
}

const char *verb_meant(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(tried); i++)
		if (strcmp(tried[i].word, word) == 0)
			return tried[i].verb;
	return NULL;
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

struct closest {
	const char *found;
	unsigned least;
};

static void compare(struct closest *closest, const char *word, const char *with, const char *verb)
{
	unsigned d = distance(word, with);

	if (d < closest->least)
		*closest = (struct closest){verb, d};
}

/* The verb of the closest spelling, if one is close: a word of three letters is not another after two changes. */
static const char *closest(const char *word)
{
	struct closest closest = {.least = strlen(word) < 5 ? 2 : 3};
	const struct verb *verb;

	for (size_t i = 0; (verb = verb_at(i)); i++)
		if (verb->summary)
			compare(&closest, word, verb->name, verb->name);
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		compare(&closest, word, aliases[i].word, aliases[i].word);
	for (size_t i = 0; i < ARRAY_SIZE(tried); i++)
		compare(&closest, word, tried[i].word, tried[i].verb);
	return closest.found;
}

/* Whether somebody has typed code, or the name of a script. */
static const char *exec_meant(const char *word)
{
	size_t size = strlen(word);

	if (size > 3 && strcmp(word + size - 3, ".py") == 0)
		return "exec -f";
	return strpbrk(word, " ()=+*/'\"") ? "exec" : NULL;
}

int verb_unknown(const struct cli *cli, const char *word)
{
	const char *meant = verb_meant(word);

	if (!meant)
		meant = exec_meant(word);
	if (!meant)
		meant = closest(word);
	if (meant)
		return cli_usage(cli, "there is no verb \"%s\"; did you mean %s?", word, meant);
	return cli_usage(cli, "there is no verb \"%s\"; lair help lists them", word);
}
