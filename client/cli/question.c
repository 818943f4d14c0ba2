/* The verbs that ask about a session, or about code: vars, complete, inspect, history, check. A prompt has the
 * first as its commands. Answers are text of the session's, shown tame. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"
#include "table.h"

#include <inttypes.h>

enum { NAMES_MAX = 1000, LINE_SIZE = 4096 };

/* Cuts @list, which it writes to, at its commas. Returns false if there are no names or too many. */
static bool names_split(const char *names[NAMES_MAX + 1], char *list)
{
	char *rest = NULL, *name = strtok_r(list, ", ", &rest);
	size_t n = 0;

	for (; name && n < NAMES_MAX; name = strtok_r(NULL, ", ", &rest))
		names[n++] = name;
	names[n] = NULL;
	return n > 0 && !name;
}

/* Makes a request about the names in @list; NULL: about none. Returns 0 or an exit status, having said why. */
static int names_wait(struct cli *cli, const char *list, struct lair_call **callp,
		      int (*start)(struct lair *lair, struct lair_call **callp, const char *session,
				   const char *const *names))
{
	_cleanup_(freep) char *copy = list ? strdup(list) : NULL;
	const char *names[NAMES_MAX + 1] = {NULL};
	int r;

	if (list && !copy)
		return cli_fail(cli, "error", "out of memory");
	if (copy && !names_split(names, copy))
		return cli_usage(cli, "expected names with commas between them; got \"%s\"", list);
	r = cli_wait(cli, start(cli->lair, callp, cli->args[0], names), callp);
	return r ? cli_trouble(cli, r) : 0;
}

int cli_keep(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;

	return names_wait(cli, cli->keep, &call, lair_keep);
}

/* ---- vars ---- */

/* "300 x 400" */
static const char *shape_text(char *out, size_t size, struct lair_items shape)
{
	size_t cursor = 0, used = 0;
	uint64_t length;

	out[0] = '\0';
	while (used < size && lair_next_number(shape, &cursor, &length))
		used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64, used ? " x " : "", length);
	return out;
}

static bool variable_row(struct lair_items items, size_t *cursor, table_row row)
{
	struct lair_variable variable;
	char text[HUMAN_SIZE];

	if (!lair_next_variable(items, cursor, &variable))
		return false;
	text_tamed(row[0], TABLE_CELL, variable.name);
	text_tamed(row[1], TABLE_CELL, variable.type);
	shape_text(row[2], TABLE_CELL, variable.shape);
	snprintf(row[3], TABLE_CELL, "%s", human_bytes(text, variable.size));
	text_tamed(row[4], TABLE_CELL, variable.text);
	return true;
}

int verb_vars(struct cli *cli)
{
	static const table_row heads = {"NAME", "TYPE", "SHAPE", "SIZE", "VALUE"};
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const struct lair_variables *found;
	int r;

	r = names_wait(cli, cli->forget, &call, lair_vars);
	if (r)
		return r;
	found = lair_variables(call);
	if (!cli->json) {
		table_print(heads, found->variables, variable_row);
		return 0;
	}
	return json_print(json_variables(found));
}

/* Only their names, in a line. */
int verb_who(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_variable variable;
	char name[TABLE_CELL];
	size_t cursor = 0;
	int r;

	if (cli->json)
		return verb_vars(cli);
	r = names_wait(cli, NULL, &call, lair_vars);
	if (r)
		return r;
	while (lair_next_variable(lair_variables(call)->variables, &cursor, &variable))
		printf("%s  ", text_tamed(name, sizeof(name), variable.name));
	puts("");
	return 0;
}

/* ---- complete ---- */

static int cursor_parse(struct cli *cli, uint64_t *cursorp)
{
	*cursorp = 0;
	if (cli->cursor && !text_number(cli->cursor, cursorp))
		return cli_usage(cli, "--cursor: expected a number of characters; got \"%s\"", cli->cursor);
	return 0;
}

int verb_complete(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const struct lair_completions *found;
	struct lair_match match;
	char line[LINE_SIZE];
	uint64_t at;
	size_t cursor = 0;
	int r;

	r = cursor_parse(cli, &at);
	if (r)
		return r;
	r = cli_wait(cli, lair_complete(cli->lair, &call, cli->args[0], lair_text(cli->args[1]), at), &call);
	if (r)
		return cli_trouble(cli, r);
	found = lair_completions(call);
	if (cli->json)
		return json_print(json_completions(found));
	while (lair_next_match(found->matches, &cursor, &match))
		puts(text_tamed(line, sizeof(line), match.text));
	return 0;
}

/* ---- inspect ---- */

static void lines_print(const char *heading, struct lair_text text)
{
	if (!text.data || text.size == 0)
		return;
	if (heading)
		puts(heading);
	text_print(text);
	if (text.data[text.size - 1] != '\n')
		putchar('\n');
}

static void inspection_print(const struct lair_inspection *found)
{
	char name[LINE_SIZE], rest[LINE_SIZE];

	if (found->signature.data)
		printf("%s%s\n", text_tamed(name, sizeof(name), found->name),
		       text_tamed(rest, sizeof(rest), found->signature));
	else
		printf("%s = %s\n", text_tamed(name, sizeof(name), found->name),
		       text_tamed(rest, sizeof(rest), found->text));
	printf("type: %s\n", text_tamed(rest, sizeof(rest), found->type));
	if (found->file.data && found->line)
		printf("from: %s, line %" PRIu64 "\n", text_tamed(rest, sizeof(rest), found->file), found->line);
	else if (found->file.data)
		printf("from: %s\n", text_tamed(rest, sizeof(rest), found->file));
	lines_print("", found->docstring);
	lines_print("", found->source);
}

int verb_inspect(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_inspect inspect = {
		.session = cli->args[0], .code = lair_text(cli->args[1]), .source = cli->source};
	const struct lair_inspection *found;
	int r;

	r = cursor_parse(cli, &inspect.cursor);
	if (r)
		return r;
	r = cli_wait(cli, lair_inspect(cli->lair, &call, &inspect), &call);
	if (r)
		return cli_trouble(cli, r);
	found = lair_inspection(call);
	if (cli->json) {
		r = json_print(json_inspection(found));
		return r || found->found ? r : EXIT_FAILURE;
	}
	if (!found->found) {
		cli_notice("there is nothing called \"%s\" in session \"%s\"", cli->args[1], cli->args[0]);
		return EXIT_FAILURE;
	}
	inspection_print(found);
	return 0;
}

/* ---- history ---- */

static void past_print(const struct lair_past *past)
{
	char cause[64];

	printf("# %" PRIu64 "%s", past->cell, past->undone ? ", undone" : "");
	if (past->cause.data)
		printf(", %s", text_tamed(cause, sizeof(cause), past->cause));
	if (past->size > past->code.size)
		printf(", the first %zu of %" PRIu64 " bytes", past->code.size, past->size);
	puts("");
	lines_print(NULL, past->code);
}

int verb_history(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_past past;
	size_t cursor = 0;
	uint64_t n = 0;
	int r;

	if (cli->n_args > 1 && (!text_number(cli->args[1], &n) || n == 0))
		return cli_usage(cli, "history: expected a number of cells; got \"%s\"", cli->args[1]);
	r = cli_wait(cli, lair_history(cli->lair, &call, cli->args[0], n), &call);
	if (r)
		return cli_trouble(cli, r);
	if (cli->json)
		return json_print(json_pack("{s:o}", "cells", json_history(lair_past_cells(call))));
	while (lair_next_past(lair_past_cells(call), &cursor, &past))
		past_print(&past);
	return 0;
}

/* ---- check ---- */

static void checked_print(const struct lair_checked *checked)
{
	char text[LINE_SIZE];

	if (checked->line)
		printf("line %" PRIu64 ": ", checked->line);
	puts(text_tamed(text, sizeof(text), checked->error));
	if (!checked->context.data || checked->context.size == 0)
		return;
	printf("    %s\n", text_tamed(text, sizeof(text), checked->context));
	if (checked->offset > 0 && checked->offset <= checked->context.size + 1)
		printf("    %*s\n", (int)checked->offset, "^");
}

int verb_check(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	_cleanup_(freep) char *read = NULL;
	struct lair_code code = {.profile = cli->profile};
	const struct lair_checked *checked;
	int r;

	r = cli_code(cli, &code.code, &read);
	if (!r)
		r = cli_connect(cli, NEED_STARTED);
	if (r)
		return r;
	r = cli_wait(cli, lair_check(cli->lair, &call, &code), &call);
	if (r)
		return cli_trouble(cli, r);
	checked = lair_checked(call);
	if (cli->json)
		r = json_print(json_checked(checked));
	else if (!checked->valid)
		checked_print(checked);
	return r || checked->valid ? r : EXIT_FAILURE;
}
