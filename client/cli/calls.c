/* calls and answer: the calls of functions that wait, and answers by others than the function's provider. */
#include "calls.h"

#include "base/json.h"
#include "base/text.h"
#include "name.h"
#include "table.h"

#include <ctype.h>
#include <inttypes.h>

#define LISTED_VALUE_MAX 40

const char *call_name(char out[static CALL_NAME_SIZE], const struct lair_waiting *waiting)
{
	char name[CLI_NAME_SIZE];

	if (waiting->session.data && waiting->cell)
		snprintf(out, CALL_NAME_SIZE, "%s %" PRIu64 "/%" PRIu64, name_shown(name, waiting->session),
			 waiting->cell, waiting->number);
	else
		snprintf(out, CALL_NAME_SIZE, "--key %s %" PRIu64, text_tamed(name, sizeof(name), waiting->key),
			 waiting->number);
	return out;
}

/* ---- calls ---- */

static bool waiting_row(struct lair_items items, size_t *cursor, table_row row)
{
	_cleanup_(freep) char *text = NULL;
	struct lair_waiting waiting;
	char word[HUMAN_SIZE], name[CALL_NAME_SIZE];

	if (!lair_next_waiting(items, cursor, &waiting))
		return false;
	text = call_text(waiting.function, waiting.arguments, waiting.bytes, LISTED_VALUE_MAX);
	snprintf(row[0], TABLE_CELL, "%.*s", TABLE_CELL - 1, call_name(name, &waiting));
	text_tamed(row[1], TABLE_CELL, waiting.state);
	snprintf(row[2], TABLE_CELL, "%s", human_seconds(word, waiting.age));
	text_cut(row[3], TABLE_CELL, text ? text : "?");
	text_tamed(row[4], TABLE_CELL, waiting.text.data ? waiting.text : lair_text("-"));
	return true;
}

int verb_calls(struct cli *cli)
{
	static const table_row heads = {"CALL", "STATE", "AGE", "FUNCTION", "WHY"};
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const struct lair_waiting_list *list;
	struct lair_waiting waiting;
	size_t cursor = 0;
	json_t *array;
	int r;

	r = cli_wait(cli, lair_calls(cli->lair, &call, cli->n_args ? cli->args[0] : NULL), &call);
	if (r)
		return cli_trouble(cli, r);
	list = lair_waiting_list(call);
	if (!cli->json) {
		table_print(heads, list->calls, waiting_row);
		if (list->more)
			cli_notice("there are %" PRIu64 " more", list->more);
		return 0;
	}
	array = json_array();
	while (lair_next_waiting(list->calls, &cursor, &waiting))
		json_array_append_new(array, json_waiting(&waiting));
	return json_print(json_pack("{s:o, s:I}", "calls", array, "more", (json_int_t)list->more));
}

/* ---- answer ---- */

static bool digits_parse(uint64_t *np, const char *text, const char **endp)
{
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*np = strtoull(text, (char **)endp, 10);
	return !errno && *np > 0;
}

/* CELL/N, or N of the running cell: that may be another one than the cell in the list. */
static bool number_parse(struct lair_answer *answer, const char *text)
{
	if (!digits_parse(&answer->number, text, &text))
		return false;
	if (*text == '/') {
		answer->cell = answer->number;
		return digits_parse(&answer->number, text + 1, &text) && !*text;
	}
	return !*text;
}

/* One of a value, --approve and --refuse. */
static int kind_check(const struct cli *cli, const char *value)
{
	int n = (value != NULL) + cli->approve + (cli->refuse != NULL);

	if (n == 1)
		return 0;
	return cli_usage(cli, n ? "answer: one of VALUE, --approve and --refuse WHY"
				: "answer: expected a VALUE in JSON, --approve, or --refuse WHY");
}

static int value_check(const struct cli *cli, struct lair_text value)
{
	json_error_t error;
	json_t *parsed = json_loadb(value.data, value.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	char shown[80];

	if (!parsed)
		return cli_usage(cli, "answer: the value is no JSON, in which text is \"in quotes\": %s; got %s",
				 error.text, text_tamed(shown, sizeof(shown), value));
	json_decref(parsed);
	return 0;
}

/* The value itself, or from stdin. *readp is the caller's to free. */
static int value_read(const struct cli *cli, const char *argument, struct lair_text *value, char **readp)
{
	int r = 0;

	*value = lair_text(argument);
	if (!argument)
		return 0;
	if (strcmp(argument, "-") == 0) {
		r = read_all(STDIN_FILENO, readp, &value->size);
		value->data = *readp;
	}
	return r ? cli_fail(cli, "error", "stdin: %s", strerror(-r)) : value_check(cli, *value);
}

/* A refusal names the function; and it is for this cell, not for the next, whose calls have the same numbers. */
static int refusal_make(struct cli *cli, struct lair_answer *answer, char **textp)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_waiting waiting;
	size_t cursor = 0;
	int r;

	r = cli_wait(cli, lair_calls(cli->lair, &call, answer->session), &call);
	if (r)
		return cli_trouble(cli, r);
	while (lair_next_waiting(lair_waiting_list(call)->calls, &cursor, &waiting)) {
		if (waiting.number != answer->number || (answer->key && !text_is(waiting.key, answer->key)) ||
		    (answer->cell && waiting.cell != answer->cell))
			continue;
		answer->cell = waiting.cell;
		answer->error = "PermissionError";
		if (asprintf(textp, "%.*s was refused: %s", (int)waiting.function.size, waiting.function.data,
			     cli->refuse) < 0)
			*textp = NULL;
		answer->text = *textp;
		return 0;
	}
	return cli_fail(cli, "gone", "no such call waits: it has an answer, or its cell waits no longer");
}

static int answered_show(const struct cli *cli, const struct lair_answer *answer)
{
	const char *how = answer->approve ? "approved" : answer->error ? "refused" : "answered";

	if (cli->json)
		return json_print(json_pack("{s:s?, s:s?, s:I, s:s}", "session", answer->session, "key",
					    answer->key, "number", (json_int_t)answer->number, "outcome", how));
	printf("call %" PRIu64 " was %s\n", answer->number, how);
	return 0;
}

int verb_answer(struct cli *cli)
{
	int at = cli->key ? 0 : 1;
	const char *number = cli->n_args > at ? cli->args[at] : NULL;
	const char *argument = cli->n_args > at + 1 ? cli->args[at + 1] : NULL;
	struct lair_answer answer = {
		.session = cli->key ? NULL : cli->args[0], .key = cli->key, .approve = cli->approve};
	_cleanup_(call_freep) struct lair_call *call = NULL;
	_cleanup_(freep) char *read = NULL, *text = NULL;
	int r;

	if (!number || !number_parse(&answer, number))
		return cli_usage(cli, "answer: expected the number of a call, which lair calls shows%s%s%s",
				 number ? "; got \"" : "", number ? number : "", number ? "\"" : "");
	if (cli->n_args > at + 2)
		return cli_usage(cli, "answer: \"%s\" is one argument too many", cli->args[at + 2]);
	r = kind_check(cli, argument);
	if (!r)
		r = value_read(cli, argument, &answer.value, &read);
	if (!r && cli->refuse)
		r = refusal_make(cli, &answer, &text);
	if (r)
		return r;
	r = cli_wait(cli, lair_answer_call(cli->lair, &call, &answer), &call);
	return r ? cli_trouble(cli, r) : answered_show(cli, &answer);
}
