/* The programs of this door, in Python: cells that do in the session what only a session may do. */
#include "e2b.h"

#include "text.h"

#include <stdio.h>
#include <stdlib.h>

#define PROGRAM(name, file)                                                                                        \
	__asm__(".pushsection .rodata\n" #name ":\n"                                                               \
		".incbin \"" E2B_PROGRAMS "/" file "\"\n"                                                          \
		".byte 0\n"                                                                                        \
		".popsection\n");                                                                                  \
	extern const char name[]

PROGRAM(e2b_command_program, "command.py");
PROGRAM(e2b_filesystem_program, "filesystem.py");
PROGRAM(e2b_watch_program, "watch.py");
PROGRAM(e2b_context_program, "context.py");

static const struct {
	const char *name, *text;
} programs[] = {
	{"command", e2b_command_program},
	{"filesystem", e2b_filesystem_program},
	{"watch", e2b_watch_program},
	{"context", e2b_context_program},
};

char *program_cell(const char *program, const json_t *given)
{
	_cleanup_(freep) char *document = json_dumps(given, JSON_COMPACT | JSON_ENSURE_ASCII);
	_cleanup_(freep) char *packed = document ? text_base64(lair_text(document)) : NULL;
	const char *text = NULL;
	char *cell = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (strcmp(programs[i].name, program) == 0)
			text = programs[i].text;
	/* In base 64 nothing of it can be taken for Python. */
	if (!packed || !text || asprintf(&cell, "%s\n_main(\"%s\")\n", text, packed) < 0)
		return NULL;
	return cell;
}
