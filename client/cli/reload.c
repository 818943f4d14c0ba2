/* The verb that has the daemon read its settings again, and shows the differences. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"

/* Of a line of the table; the JSON has all. */
#define VALUE_SIZE 160

static int reloaded_json(const struct lair_reloaded *reloaded)
{
	return json_print(json_pack("{s:b, s:o, s:o}", "reloaded", 1, "path", json_text(reloaded->path), "changes",
				    json_changes(reloaded->changes)));
}

/* On one line, "empty" if there is nothing. */
static const char *value_shown(char out[static VALUE_SIZE], struct lair_text value)
{
	size_t size = 0;

	for (size_t i = 0; i < value.size && size < VALUE_SIZE - 1; i++) {
		bool blank = strchr(" \t\n", value.data[i]) != NULL;

		if (!blank)
			out[size++] = value.data[i];
		else if (size > 0 && out[size - 1] != ' ')
			out[size++] = ' ';
	}
	out[size] = '\0';
	if (size == VALUE_SIZE - 1)
		memcpy(out + size - 3, "...", 3);
	return size ? text_tame(out) : "empty";
}

static void change_print(const struct lair_change *change)
{
	char profile[96], setting[64], before[VALUE_SIZE], after[VALUE_SIZE];

	(void)text_tamed(profile, sizeof(profile), change->profile);
	if (!change->setting.data) {
		printf("profile %s: %s\n", profile, text_tamed(setting, sizeof(setting), change->change));
		return;
	}
	printf("%s%s%s%s: was %s, is %s%s\n", *profile ? "profile " : "", profile, *profile ? ", " : "",
	       text_tamed(setting, sizeof(setting), change->setting), value_shown(before, change->before),
	       value_shown(after, change->after),
	       change->restart ? "; takes effect when laird is started anew" : "");
}

int verb_reload(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const struct lair_reloaded *reloaded;
	struct lair_change change;
	char path[1024];
	size_t cursor = 0, n = 0;
	int r;

	r = cli_wait(cli, lair_reload(cli->lair, &call), &call);
	if (r)
		return cli_trouble(cli, r);
	reloaded = lair_reloaded(call);
	if (cli->json)
		return reloaded_json(reloaded);
	printf("settings read from %s, for sessions opened from now on\n",
	       reloaded->path.data ? text_tamed(path, sizeof(path), reloaded->path) : "inside laird");
	for (; lair_next_change(reloaded->changes, &cursor, &change); n++)
		change_print(&change);
	if (n == 0)
		puts("no setting has changed");
	return 0;
}
