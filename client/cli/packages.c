/* lair packages: which sets of packages laird has, what they cost and who has them, and to remove those that nobody
 * has. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"
#include "table.h"

#include "proto/paths.h"

#include <time.h>

/* Of the projects of a set, and of the sessions that have it. */
#define SHOWN_SIZE 60
#define USERS_SIZE 24

/* "polars==2.1.0 and 8 more", in about @most characters. */
static void list_text(char *out, size_t size, size_t most, struct lair_items items)
{
	char first[SHOWN_SIZE + 40];
	struct lair_text item;
	size_t cursor = 0, n = 0, at = 0;

	out[0] = '\0';
	while (lair_next_text(items, &cursor, &item)) {
		if (at + item.size < most && item.size < sizeof(first))
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? " " : "",
					       text_tamed(first, sizeof(first), item));
		else
			n++;
	}
	if (n > 0)
		snprintf(out + at, size - at, "%s%zu more", at ? " and " : "", n);
}

static bool set_row(struct lair_items items, size_t *cursor, table_row row)
{
	struct lair_package_set set;
	char text[HUMAN_SIZE];

	if (!lair_next_package_set(items, cursor, &set))
		return false;
	snprintf(row[0], TABLE_CELL, "%.*s", (int)MIN(set.set.size, (size_t)12), set.set.data);
	snprintf(row[1], TABLE_CELL, "%s", set.size ? human_bytes(text, set.size) : "-");
	snprintf(row[2], TABLE_CELL, "%s", set.template_memory ? human_bytes(text, set.template_memory) : "-");
	snprintf(row[3], TABLE_CELL, "%s", human_seconds(text, (double)time(NULL) - set.made));
	list_text(row[4], TABLE_CELL, USERS_SIZE, set.sessions);
	if (!row[4][0])
		snprintf(row[4], TABLE_CELL, "%s", set.used ? "in use" : "-");
	list_text(row[5], TABLE_CELL, SHOWN_SIZE, set.projects);
	return true;
}

static json_t *set_json(const struct lair_package_set *set)
{
	json_t *it = json_pack("{s:o, s:f, s:b, s:o, s:o}", "set", json_text(set->set), "made", set->made, "used",
			       (int)set->used, "projects", json_texts(set->projects), "sessions",
			       json_texts(set->sessions));

	if (set->size)
		json_object_set_new(it, "size", json_integer((json_int_t)set->size));
	if (set->template_memory)
		json_object_set_new(it, "template", json_integer((json_int_t)set->template_memory));
	return it;
}

static int tell_json(const struct lair_package_sets *sets)
{
	const struct {
		const char *name;
		uint64_t value;
	} sizes[] = {{"taken", sets->taken}, {"cache", sets->cache}, {"total", sets->total}};
	struct lair_package_set set;
	json_t *list = json_array(), *it;
	size_t cursor = 0;

	while (lair_next_package_set(sets->sets, &cursor, &set))
		json_array_append_new(list, set_json(&set));
	it = json_pack("{s:o, s:o, s:I}", "path", json_text(sets->path), "sets", list, "more",
		       (json_int_t)sets->more);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (sizes[i].value)
			json_object_set_new(it, sizes[i].name, json_integer((json_int_t)sizes[i].value));
	return json_print(it);
}

static void tell_store(const struct lair_package_sets *sets)
{
	char taken[HUMAN_SIZE], cache[HUMAN_SIZE], total[HUMAN_SIZE];

	printf("the store has %s, and %s to install them again", human_bytes(taken, sets->taken),
	       human_bytes(cache, sets->cache));
	if (sets->total)
		printf("; packages_total = %s", human_bytes(total, sets->total));
	printf("\n");
}

static void tell(const struct lair_package_sets *sets, bool pruned)
{
	static const table_row heads = {"SET", "SIZE", "TEMPLATE", "AGE", "USED BY", "PACKAGES"};
	char size[HUMAN_SIZE], path[PATH_SIZE];
	struct lair_package_set set;
	size_t cursor = 0, n = 0;
	uint64_t all = 0, templates = 0;

	while (lair_next_package_set(sets->sets, &cursor, &set)) {
		all += set.size;
		templates += set.template_memory;
		n++;
	}
	if (n > 0)
		table_print(heads, sets->sets, set_row);
	printf("%s%zu set%s, %s, in %s\n", pruned ? "removed: " : "", n, n == 1 ? "" : "s", human_bytes(size, all),
	       text_tamed(path, sizeof(path), sets->path));
	if (templates)
		printf("templates: %s of memory\n", human_bytes(size, templates));
	if (sets->taken || sets->cache)
		tell_store(sets);
}

int verb_packages(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	bool prune = cli->n_args > 0;
	int r;

	if (prune && strcmp(cli->args[0], "prune") != 0)
		return cli_usage(cli, "expected prune, or nothing; got \"%s\"", cli->args[0]);
	r = cli_wait(cli, lair_packages(cli->lair, &call, prune), &call);
	if (r)
		return cli_trouble(cli, r);
	if (cli->json)
		return tell_json(lair_package_sets(call));
	tell(lair_package_sets(call), prune);
	return 0;
}
