/* The programs of this door, in Python: cells that do in the session what only a session may do. */
#include "e2b.h"

#include "base/embed.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

EMBED(e2b_command_program, E2B_PROGRAMS "/command.py");
EMBED(e2b_filesystem_program, E2B_PROGRAMS "/filesystem.py");
EMBED(e2b_watch_program, E2B_PROGRAMS "/watch.py");
EMBED(e2b_context_program, E2B_PROGRAMS "/context.py");

static const struct {
	const char *name, *before, *text; /* before: another, of which it uses functions */
	bool apart; /* its names are not to be those of the session, in which others run cells afterwards */
} programs[] = {
	{"command", "", e2b_command_program, false},
	{"filesystem", "", e2b_filesystem_program, false},
	{"watch", e2b_filesystem_program, e2b_watch_program, false},
	{"context", "", e2b_context_program, true},
};

/* In base 64 nothing of it can be taken for Python. */
static char *cell_apart(const char *text, const char *given)
{
	_cleanup_(freep) char *packed = text_base64(lair_text(text));
	char *cell = NULL;

	if (!packed || asprintf(&cell,
				"exec(__import__('base64').b64decode('%s').decode() + '\\n_main(\"%s\")', "
				"{'__name__': 'lair'})",
				packed, given) < 0)
		return NULL;
	return cell;
}

static char *cell_within(const char *before, const char *text, const char *given)
{
	char *cell = NULL;

	return asprintf(&cell, "%s\n%s\n_main(\"%s\")\n", before, text, given) < 0 ? NULL : cell;
}

char *program_cell(const char *program, const json_t *given)
{
	_cleanup_(freep) char *document = json_dumps(given, JSON_COMPACT | JSON_ENSURE_ASCII);
	_cleanup_(freep) char *packed = document ? text_base64(lair_text(document)) : NULL;

	for (size_t i = 0; packed && i < ARRAY_SIZE(programs); i++)
		if (strcmp(programs[i].name, program) == 0)
			return programs[i].apart ? cell_apart(programs[i].text, packed)
						 : cell_within(programs[i].before, programs[i].text, packed);
	return NULL;
}
