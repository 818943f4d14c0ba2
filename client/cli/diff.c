/* How two states of a session differ, for people and for programs. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"

#include <inttypes.h>

/* The daemon gives up after 6 s. */
#define DIFF_TIMEOUT 20.0
#define PATH_SHOWN 256
#define TEXT_SHOWN 128

static const char *sign_of(struct lair_text change)
{
	static const struct {
		const char *change, *sign;
	} signs[] = {
		{"created", "+"}, {"new", "+"}, {"deleted", "-"}, {"gone", "-"}, {"renamed", ">"}, {"mode", "%"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (text_is(change, signs[i].change))
			return signs[i].sign;
	return "~";
}

static void file_print(const struct lair_file_difference *file)
{
	char path[PATH_SHOWN], was[PATH_SHOWN], before[HUMAN_SIZE], after[HUMAN_SIZE];

	printf("  %s %s", sign_of(file->change), text_tamed(path, sizeof(path), file->path));
	if (file->was.data)
		printf(" (was %s)", text_tamed(was, sizeof(was), file->was));
	human_bytes(before, file->size_before);
	human_bytes(after, file->size);
	if (text_is(file->change, "deleted"))
		printf("  %s", before);
	else if (text_is(file->change, "created") || file->size == file->size_before)
		printf("  %s", after);
	else
		printf("  %s -> %s", before, after);
	if (file->mode != file->mode_before)
		printf("  mode %03" PRIo64 " -> %03" PRIo64, file->mode_before, file->mode);
	putchar('\n');
}

static void variable_print(const struct lair_variable_difference *variable)
{
	char name[TEXT_SHOWN], type[TEXT_SHOWN], text[TEXT_SHOWN];

	printf("  %s %s", sign_of(variable->change), text_tamed(name, sizeof(name), variable->name));
	if (variable->text_before.data)
		printf("  %s %s ->", text_tamed(type, sizeof(type), variable->type_before),
		       text_tamed(text, sizeof(text), variable->text_before));
	printf("%s%s %s\n", variable->text_before.data ? " " : "  ", text_tamed(type, sizeof(type), variable->type),
	       text_tamed(text, sizeof(text), variable->text));
}

static void lack_print(struct lair_text why, uint64_t more)
{
	char text[TEXT_SHOWN * 2];

	if (more > 0)
		printf("  and %" PRIu64 " more\n", more);
	if (why.data)
		printf("  not known: %s\n", text_tamed(text, sizeof(text), why));
}

static void unsure_print(struct lair_items names)
{
	struct lair_text name;
	char text[TEXT_SHOWN];
	size_t cursor = 0;

	while (lair_next_text(names, &cursor, &name))
		printf("  ? %s  may have changed where nobody can see it\n", text_tamed(text, sizeof(text), name));
}

static void difference_print(const struct lair_difference *difference)
{
	struct lair_variable_difference variable;
	struct lair_file_difference file;
	char since[HUMAN_SIZE], until[HUMAN_SIZE];
	size_t cursor = 0;

	printf("from %s to %s\n", human_state(since, difference->since), human_state(until, difference->until));
	puts("files");
	while (lair_next_file_difference(difference->files, &cursor, &file))
		file_print(&file);
	lack_print(difference->files_lack, difference->files_more);
	puts("variables");
	for (cursor = 0; lair_next_variable_difference(difference->variables, &cursor, &variable);)
		variable_print(&variable);
	lack_print(difference->variables_lack, difference->variables_more);
	unsure_print(difference->unsure);
}

int verb_diff(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const char *since = cli->n_args > 1 ? cli->args[1] : NULL, *until = cli->n_args > 2 ? cli->args[2] : NULL;
	int r;

	if (!(cli->timeout > 0))
		cli->timeout = DIFF_TIMEOUT;
	r = cli_wait(cli, lair_diff(cli->lair, &call, cli->args[0], since, until), &call);
	if (r)
		return cli_trouble(cli, r);
	if (cli->json)
		return json_print(json_difference(cli->args[0], lair_difference(call)));
	difference_print(lair_difference(call));
	return 0;
}
