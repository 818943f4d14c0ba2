/* The verbs about states: keep one, go back to one, make another session from one. Each is one request, shown to
 * a person or to a program. A prompt has the same verbs as commands. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"
#include "shown.h"
#include "table.h"

#include <ctype.h>
#include <inttypes.h>

/* The daemon takes at most two minutes for a copy of a branch's files. */
#define COPY_TIMEOUT 150.0

/* Tells the present state of the session; @what is the verb of the sentence. */
static int state_show(const struct cli *cli, const struct lair_call *call, const char *what)
{
	const struct lair_state *state = lair_state(call);
	char which[HUMAN_SIZE], name[128];

	if (cli->json)
		return json_print(json_state(cli->args[0], state));
	printf("session \"%s\" %s %s", cli->args[0], what, human_state(which, state->cell));
	if (state->name.data)
		printf(" (\"%s\")", text_tamed(name, sizeof(name), state->name));
	putchar('\n');
	result_notice(&(struct lair_result){.back = state->back, .effects = state->effects}, 0);
	return 0;
}

int verb_checkpoint(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const char *name = cli->n_args > 1 ? cli->args[1] : NULL;
	int r;

	r = cli_wait(cli, lair_checkpoint(cli->lair, &call, cli->args[0], name), &call);
	return r ? cli_trouble(cli, r) : state_show(cli, call, "keeps");
}

int verb_restore(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r = cli_wait(cli, lair_restore(cli->lair, &call, cli->args[0], cli->args[1], cli->keep_files), &call);

	return r ? cli_trouble(cli, r) : state_show(cli, call, "is back in");
}

int verb_undo(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	uint64_t n = 1;
	int r;

	if (cli->n_args > 1 && (!text_number(cli->args[1], &n) || n == 0))
		return cli_usage(cli, "undo: expected how many states to go back, 1 or more; got \"%s\"",
				 cli->args[1]);
	r = cli_wait(cli, lair_undo(cli->lair, &call, cli->args[0], n, cli->keep_files), &call);
	return r ? cli_trouble(cli, r) : state_show(cli, call, "is back in");
}

int verb_drop(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r = cli_wait(cli, lair_drop(cli->lair, &call, cli->args[0], cli->args[1]), &call);

	if (r)
		return cli_trouble(cli, r);
	if (cli->json)
		return json_print(json_pack("{s:s, s:s}", "session", cli->args[0], "dropped", cli->args[1]));
	return 0;
}

static int branch_json(const struct lair_session *session)
{
	json_t *document = json_session(session);

	json_object_set_new(document, "own_files", json_boolean(session->own_files));
	return json_print(document);
}

int verb_branch(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_branch branch = {
		.session = cli->args[0],
		.branch = cli->args[1],
		.from = cli->from,
		.files = cli->files,
		.share = cli->share,
		.at_call = cli->at_call,
	};
	int r;

	if (!cli->share && !(cli->timeout > 0))
		cli->timeout = COPY_TIMEOUT;
	r = cli_wait(cli, lair_branch(cli->lair, &call, &branch), &call);
	if (r)
		return cli_trouble(cli, r);
	if (cli->json)
		return branch_json(lair_session(call));
	printf("session \"%s\" opened, a branch of \"%s\" on %s\n", branch.branch, branch.session,
	       lair_session(call)->own_files ? "files of its own" : "the same files");
	if (branch.at_call)
		printf("cell %llu goes on in both; \"lair attach %s %llu\" waits for its result in the branch\n",
		       (unsigned long long)lair_session(call)->cells, branch.branch,
		       (unsigned long long)lair_session(call)->cells);
	result_notice(&(struct lair_result){.effects = lair_session(call)->effects}, 0);
	return 0;
}

/* ---- checkpoints ---- */

static bool checkpoint_row(struct lair_items items, size_t *cursor, table_row row)
{
	struct lair_checkpoint checkpoint;
	char text[HUMAN_SIZE];

	if (!lair_next_checkpoint(items, cursor, &checkpoint))
		return false;
	snprintf(row[0], TABLE_CELL, "%" PRIu64, checkpoint.cell);
	text_tamed(row[1], TABLE_CELL, checkpoint.name.data ? checkpoint.name : lair_text("-"));
	snprintf(row[2], TABLE_CELL, "%s", human_seconds(text, checkpoint.age));
	snprintf(row[3], TABLE_CELL, "%s", human_bytes(text, checkpoint.memory));
	if (checkpoint.files)
		snprintf(row[4], TABLE_CELL, "%" PRIu64 ", %s%s", checkpoint.files,
			 human_bytes(text, checkpoint.files_size), checkpoint.files_lack ? ", not all kept" : "");
	else
		snprintf(row[4], TABLE_CELL, "-");
	return true;
}

int verb_checkpoints(struct cli *cli)
{
	static const table_row heads = {"CELL", "NAME", "AGE", "MEMORY", "FILES"};
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r;

	r = cli_wait(cli, lair_checkpoints(cli->lair, &call, cli->args[0]), &call);
	if (r)
		return cli_trouble(cli, r);
	if (!cli->json) {
		table_print(heads, lair_checkpoint_list(call), checkpoint_row);
		return 0;
	}
	return json_print(json_pack("{s:s, s:o}", "session", cli->args[0], "checkpoints",
				    json_checkpoints(lair_checkpoint_list(call))));
}
