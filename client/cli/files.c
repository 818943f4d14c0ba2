/* lair files: lists a directory of a session. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"

#include <limits.h>

static void files_print(struct lair_items files)
{
	char kind[16], name[NAME_MAX + 1], size[HUMAN_SIZE], date[HUMAN_SIZE];
	struct lair_file file;
	size_t cursor = 0;

	while (lair_next_file(files, &cursor, &file))
		printf("%-9s  %10s  %s  %s\n", text_tamed(kind, sizeof(kind), file.kind),
		       text_is(file.kind, "file") ? human_bytes(size, file.size) : "-",
		       human_date(date, file.modified), text_tamed(name, sizeof(name), file.name));
}

static void files_add(json_t *array, struct lair_items files)
{
	json_t *more = json_files(files);

	json_array_extend(array, more);
	json_decref(more);
}

int verb_files(struct cli *cli)
{
	struct lair_files_of files = {.session = cli->args[0],
				      .path = lair_text(cli->n_args > 1 ? cli->args[1] : NULL)};
	json_t *array = json_array();
	int r;

	do {
		_cleanup_(call_freep) struct lair_call *call = NULL;

		r = cli_wait(cli, lair_files(cli->lair, &call, &files), &call);
		if (r) {
			json_decref(array);
			return cli_trouble(cli, r);
		}
		files.after = lair_listing(call)->next;
		if (cli->json)
			files_add(array, lair_listing(call)->files);
		else
			files_print(lair_listing(call)->files);
	} while (files.after);
	if (cli->json)
		return json_print(json_pack("{s:s, s:o}", "session", cli->args[0], "files", array));
	json_decref(array);
	return 0;
}
