/* save, load and saves, and the notes on loaded variables. */
#include "cli.h"

#include "base/result.h"
#include "base/text.h"
#include "name.h"
#include "shown.h"
#include "table.h"

#include <inttypes.h>

/* By default the daemon gives each save or load at least so many seconds, and a cell may come before it. */
#define SAVING_TIMEOUT 120.0

static void timeout_default(struct cli *cli)
{
	if (!(cli->timeout > 0))
		cli->timeout = SAVING_TIMEOUT;
}

int verb_save(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	char size[HUMAN_SIZE], names[NAMES_SIZE];
	const struct lair_saved *saved;
	int r;

	timeout_default(cli);
	r = cli_wait(cli, lair_save(cli->lair, &call, cli->args[0]), &call);
	if (r)
		return cli_trouble(cli, r);
	saved = lair_saved(call);
	if (cli->json)
		return json_print(json_saved(cli->args[0], saved));
	printf("session \"%s\" saved, %s: %s\n", cli->args[0], human_bytes(size, saved->size),
	       human_names(names, saved->names, saved->refused));
	return 0;
}

int verb_load(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r;

	timeout_default(cli);
	r = cli_wait(cli, lair_load(cli->lair, &call, cli->args[0]), &call);
	if (r)
		return cli_trouble(cli, r);
	if (cli->json) {
		json_t *document = json_loaded(lair_loaded(call));

		json_object_set_new(document, "ended", json_ended(lair_load_ended(call)));
		return json_print(document);
	}
	result_notice(&(struct lair_result){.ended = *lair_load_ended(call), .loaded = *lair_loaded(call)}, 0);
	return 0;
}

/* ---- saves ---- */

static bool save_row(struct lair_items items, size_t *cursor, table_row row)
{
	char name[CLI_NAME_SIZE], text[HUMAN_SIZE];
	struct lair_save save;

	if (!lair_next_save(items, cursor, &save))
		return false;
	snprintf(row[0], TABLE_CELL, "%s", save.session.size ? name_shown(name, save.session) : "(damaged)");
	snprintf(row[1], TABLE_CELL, "%s", save.session.size ? human_date(text, save.created) : "-");
	snprintf(row[2], TABLE_CELL, "%s", save.expires > 0 ? human_date(text, save.expires) : "never");
	snprintf(row[3], TABLE_CELL, "%s", human_bytes(text, save.size));
	snprintf(row[4], TABLE_CELL, "%" PRIu64, save.count);
	snprintf(row[5], TABLE_CELL, "%s", save.before > 0 ? human_date(text, save.before) : "-");
	snprintf(row[6], TABLE_CELL, "%" PRIu64, save.damaged);
	return true;
}

static int saves_list(struct cli *cli)
{
	static const table_row heads = {"SESSION", "SAVED", "EXPIRES", "SIZE", "NAMES", "BEFORE", "DAMAGED"};
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r;

	r = cli_wait(cli, lair_saves(cli->lair, &call, NULL), &call);
	if (r)
		return cli_trouble(cli, r);
	if (!cli->json) {
		table_print(heads, lair_save_list(call), save_row);
		return 0;
	}
	return json_print(json_pack("{s:o}", "saves", json_saves(lair_save_list(call))));
}

static int saves_show(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	char text[HUMAN_SIZE], line[512];
	struct lair_refused refused;
	struct lair_save save;
	struct lair_text name;
	size_t cursor = 0;
	int r;

	r = cli_wait(cli, lair_saves(cli->lair, &call, cli->args[1]), &call);
	if (r)
		return cli_trouble(cli, r);
	if (!lair_next_save(lair_save_list(call), &cursor, &save))
		return cli_fail(cli, "protocol", "the daemon does not list the saved states");
	if (cli->json)
		return json_print(json_save(&save));
	printf("saved %s, %s", human_date(text, save.created), human_bytes(line, save.size));
	printf("%s%s\n", save.expires > 0 ? ", until " : "",
	       save.expires > 0 ? human_date(text, save.expires) : "");
	if (save.before > 0)
		printf("the one before it was saved %s\n", human_date(text, save.before));
	if (save.damaged > 0)
		printf("%" PRIu64 " damaged, kept aside until they expire\n", save.damaged);
	for (cursor = 0; lair_next_text(save.names, &cursor, &name);)
		printf("%s\n", text_tamed(line, sizeof(line), name));
	for (cursor = 0; lair_next_refused(save.refused, &cursor, &refused);) {
		printf("not %s: ", text_tamed(line, sizeof(line), refused.name));
		printf("%s\n", text_tamed(line, sizeof(line), refused.reason));
	}
	return 0;
}

static int saves_remove(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r = cli_wait(cli, lair_unsave(cli->lair, &call, cli->args[1]), &call);

	if (r)
		return cli_trouble(cli, r);
	return cli->json ? json_print(json_pack("{s:s, s:b}", "session", cli->args[1], "removed", 1)) : 0;
}

int verb_saves(struct cli *cli)
{
	const char *what = cli->n_args ? cli->args[0] : "list";

	if (!strcmp(what, "list") && cli->n_args < 2)
		return saves_list(cli);
	if (!strcmp(what, "show") && cli->n_args == 2)
		return saves_show(cli);
	if (!strcmp(what, "rm") && cli->n_args == 2)
		return saves_remove(cli);
	return cli_usage(cli, "saves: expected list, show ID or rm ID");
}
