/* Shorthands, as a table. Each script is run with names of its own, so that the session's stay as they are; what
 * was typed after the command reaches it as a string. What goes wrong is told without the lines of the script,
 * which nobody has typed. */
#include "shorthand.h"

static const char runner[] = "import sys, traceback\n"
			     "try: exec(script, {'argument': argument, 'names': names})\n"
			     "except Exception as e: print(*traceback.format_exception_only(type(e), e), sep='', "
			     "end='', file=sys.stderr)\n";

const struct shorthand shorthands[] = {
	{"!", "COMMAND", "run a program, by the shell, if the profile grants it",
	 "import subprocess\n"
	 "status = subprocess.call(argument, shell=True)\n"
	 "if status: print(f'exit status {status}')\n"},
	{"%cd", "[DIR]", "change the directory, or go back to the session's own",
	 "import os\n"
	 "os.chdir(os.path.expanduser(argument or '~'))\n"
	 "print(os.getcwd())\n"},
	{"%env", "[NAME[=VALUE]]", "show the environment, or a variable, or set it",
	 "import os\n"
	 "name, equals, value = argument.partition('=')\n"
	 "if equals: os.environ[name.strip()] = value.strip()\n"
	 "elif name: print(os.environ.get(name, f'{name} is not set'))\n"
	 "else: print(*sorted(f'{name}={value}' for name, value in os.environ.items()), sep='\\n')\n"},
	{"%timeit", "CODE", "run code many times, and say how long it takes",
	 "import timeit\n"
	 "timer = timeit.Timer(argument, globals=names)\n"
	 "number, taken = timer.autorange()\n"
	 "best = min([taken, *timer.repeat(4, number)]) / number\n"
	 "unit, scale = next(((u, s) for u, s in (('s', 1), ('ms', 1e3), ('us', 1e6)) if best * s >= 1), ('ns', "
	 "1e9))\n"
	 "print(f'{best * scale:.3g} {unit} a loop, the best of 5 times {number} loops')\n"},
	{"%time", "CODE", "run code, and say how long it took", NULL},
};
const size_t n_shorthands = ARRAY_SIZE(shorthands);

static struct lair_text trimmed(struct lair_text text)
{
	while (text.size > 0 && strchr(" \t\r\n", text.data[0])) {
		text.data++;
		text.size--;
	}
	while (text.size > 0 && strchr(" \t\r\n", text.data[text.size - 1]))
		text.size--;
	return text;
}

/* Whether @text begins with the command. If so, the command is cut off. */
static bool begins_with(struct lair_text *text, const char *name)
{
	size_t size = strlen(name);

	if (text->size < size || memcmp(text->data, name, size) != 0)
		return false;
	if (name[0] == '%' && text->size > size && !strchr(" \t", text->data[size]))
		return false;
	*text = trimmed((struct lair_text){.data = text->data + size, .size = text->size - size});
	return true;
}

/* As a literal: JSON's strings are Python's, too. New; NULL without memory. */
static char *literal(struct lair_text text)
{
	json_t *string = json_stringn(text.data, text.size);
	char *dumped = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

	json_decref(string);
	return dumped;
}

/* Before the code stands the line that was typed, for readers of the history. */
static char *code_of(const struct shorthand *shorthand, struct lair_text typed, struct lair_text argument)
{
	_cleanup_(freep) char *run = NULL, *script = NULL, *quoted = NULL;
	char *code;

	if (!shorthand->script)
		return strndup(argument.data, argument.size);
	run = literal(lair_text(runner));
	script = literal(lair_text(shorthand->script));
	quoted = literal(argument);
	if (!run || !script || !quoted ||
	    asprintf(&code, "# %.*s\nexec(%s, {'script': %s, 'argument': %s, 'names': globals()})", (int)typed.size,
		     typed.data, run, script, quoted) < 0)
		return NULL;
	return code;
}

const struct shorthand *shorthand_expand(struct lair_text text, char **codep)
{
	text = trimmed(text);
	for (size_t i = 0; i < n_shorthands; i++) {
		struct lair_text argument = text;

		if (!begins_with(&argument, shorthands[i].name))
			continue;
		*codep = code_of(&shorthands[i], text, argument);
		return &shorthands[i];
	}
	return NULL;
}
