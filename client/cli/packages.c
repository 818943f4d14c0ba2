/* lair packages: which sets of packages laird has, and to remove those that nobody uses. */
#include "cli.h"

#include "json.h"
#include "table.h"
#include "text.h"

#include "proto/paths.h"

#include <time.h>

/* Of the projects of a set. */
#define SHOWN_SIZE 60

/* "polars==2.1.0 and 8 more" */
static void projects_text(char *out, size_t size, struct lair_items projects)
{
	char first[SHOWN_SIZE + 40];
	struct lair_text project;
	size_t cursor = 0, n = 0, at = 0;

	out[0] = '\0';
	while (lair_next_text(projects, &cursor, &project)) {
		if (at + project.size < SHOWN_SIZE && project.size < sizeof(first))
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? " " : "",
					       text_tamed(first, sizeof(first), project));
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
	snprintf(row[2], TABLE_CELL, "%s", human_seconds(text, (double)time(NULL) - set.made));
	snprintf(row[3], TABLE_CELL, "%s", set.used ? "in use" : "-");
	projects_text(row[4], TABLE_CELL, set.projects);
	return true;
}

static json_t *set_json(const struct lair_package_set *set)
{
	json_t *projects = json_array(), *it;
	struct lair_text project;
	size_t cursor = 0;

	while (lair_next_text(set->projects, &cursor, &project))
		json_array_append_new(projects, json_text(project));
	it = json_pack("{s:o, s:f, s:b, s:o}", "set", json_text(set->set), "made", set->made, "used",
		       (int)set->used, "projects", projects);
	if (set->size)
		json_object_set_new(it, "size", json_integer((json_int_t)set->size));
	return it;
}

static int tell_json(const struct lair_package_sets *sets)
{
	struct lair_package_set set;
	json_t *list = json_array();
	size_t cursor = 0;

	while (lair_next_package_set(sets->sets, &cursor, &set))
		json_array_append_new(list, set_json(&set));
	return json_print(json_pack("{s:o, s:o, s:I}", "path", json_text(sets->path), "sets", list, "more",
				    (json_int_t)sets->more));
}

static void tell(const struct lair_package_sets *sets, bool pruned)
{
	static const table_row heads = {"SET", "SIZE", "AGE", "USE", "PACKAGES"};
	char size[HUMAN_SIZE], path[PATH_SIZE];
	struct lair_package_set set;
	size_t cursor = 0, n = 0;
	uint64_t all = 0;

	while (lair_next_package_set(sets->sets, &cursor, &set)) {
		all += set.size;
		n++;
	}
	if (n > 0)
		table_print(heads, sets->sets, set_row);
	printf("%s%zu set%s, %s, in %s\n", pruned ? "removed: " : "", n, n == 1 ? "" : "s", human_bytes(size, all),
	       text_tamed(path, sizeof(path), sets->path));
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
