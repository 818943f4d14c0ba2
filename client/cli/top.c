/* lair top: the list of sessions, the busiest first, once a second. How busy a session is comes of two lists. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"
#include "name.h"

#include "proto/clock.h"

#include <inttypes.h>

#define PERIOD_S 1
/* If there are many busy sessions, one of them is not measured for each list. Until it is, its rate stays. */
#define RATE_KEPT_S 10.0

struct row {
	struct lair_session is;
	double rate, since; /* since: when its CPU time was last seen to change */
};

struct listing {
	struct lair_call *call; /* has the texts of the rows */
	struct row *rows;
	size_t n;
};

static const char *const columns[] = {"cpu", "memory", "disk", "age", "idle", "owner", "name"};

/* ---- lists ---- */

static void listing_deinit(struct listing *list)
{
	lair_call_free(list->call);
	free(list->rows);
	*list = (struct listing){.n = 0};
}

static int by_birth(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return (one->is.birth > other->is.birth) - (one->is.birth < other->is.birth);
}

static void rate_find(struct row *row, const struct listing *last, double now)
{
	const struct row *before = last->n > 0 ? bsearch(row, last->rows, last->n, sizeof(*row), by_birth) : NULL;

	row->since = now;
	if (before && row->is.cpu > before->is.cpu) {
		row->rate = (row->is.cpu - before->is.cpu) / (now - before->since);
	} else if (before && text_is(row->is.state, "busy") && now - before->since < RATE_KEPT_S) {
		row->rate = before->rate;
		row->since = before->since;
	}
}

/* The next list, in the place of the last one. Returns 0 or an exit status, having said why. */
static int list_renew(struct listing *list, struct cli *cli)
{
	_cleanup_(listing_deinit) struct listing last = *list;
	struct lair_session session;
	size_t cursor = 0;
	int r;

	*list = (struct listing){.n = 0};
	r = cli_wait(cli, lair_list(cli->lair, &list->call), &list->call);
	if (r)
		return cli_trouble(cli, r);
	while (lair_next_session(lair_sessions(list->call), &cursor, &session)) {
		struct row *grown = reallocarray(list->rows, list->n + 1, sizeof(*grown));

		if (!grown)
			return cli_trouble(cli, -ENOMEM);
		list->rows = grown;
		list->rows[list->n++] = (struct row){.is = session};
	}
	if (last.n > 0)
		qsort(last.rows, last.n, sizeof(*last.rows), by_birth);
	for (size_t i = 0; i < list->n; i++)
		rate_find(&list->rows[i], &last, clock_seconds());
	return 0;
}

/* ---- their order ---- */

/* The largest comes first. */
static double value_of(const struct row *row, const char *column)
{
	switch (column[0]) {
	case 'c':
		return row->rate;
	case 'm':
		return (double)row->is.memory;
	case 'd':
		return (double)row->is.disk;
	case 'a':
		return -row->is.created;
	case 'i':
		return row->is.idle;
	case 'o':
		return -(double)row->is.uid;
	}
	return 0;
}

static int row_compare(const void *a, const void *b, void *column)
{
	const struct row *one = a, *other = b;
	const char *by = *(const char *const *)column;
	double x = value_of(one, by), y = value_of(other, by);
	struct lair_text name = one->is.session, than = other->is.session;
	int r = memcmp(name.data, than.data, MIN(name.size, than.size));

	if (x > y || x < y)
		return x > y ? -1 : 1;
	return r ? r : (name.size > than.size) - (name.size < than.size);
}

/* ---- drawing ---- */

/* At most @width columns of a line; 0: all. */
static void line_put(FILE *out, const char *text, unsigned width)
{
	size_t left = strlen(text), used = 0, size;
	char one[8];

	for (; left > 0; text += size, left -= size) {
		size = MAX(text_character_size(text, left), (size_t)1);
		snprintf(one, sizeof(one), "%.*s", (int)size, text);
		used += text_columns(one);
		if (width && used > width)
			break;
		(void)fwrite(text, 1, size, out);
	}
}

/* @text in so many columns; the rest is cut. */
static void cell_put(FILE *out, const char *text, unsigned width)
{
	size_t used = text_columns(text);

	line_put(out, text, width);
	fprintf(out, "%*s  ", used < width ? (int)(width - used) : 0, "");
}

static void row_put(FILE *out, const struct row *row, unsigned width)
{
	char text[CLI_NAME_SIZE];

	cell_put(out, name_shown(text, row->is.session), width);
	cell_put(out, name_of_user(text, row->is.uid), 8);
	cell_put(out, text_tamed(text, sizeof(text), row->is.state), 8);
	fprintf(out, "%6.1f  %8.1f  ", row->rate * 100, row->is.cpu);
	cell_put(out, human_bytes_of(text, row->is.memory, row->is.memory_limit), 22);
	cell_put(out, row->is.disk_limit ? human_bytes_of(text, row->is.disk, row->is.disk_limit) : "-", 22);
	fprintf(out, "%5" PRIu64 "  ", row->is.tasks);
	cell_put(out, human_seconds(text, row->is.idle), 8);
	cell_put(out, human_seconds(text, clock_date() - row->is.created), 8);
	fprintf(out, "%s\n", text_tamed(text, sizeof(text), row->is.profile));
}

static void list_put(FILE *out, const struct listing *list)
{
	size_t width = strlen("SESSION"), busy = 0;
	char name[CLI_NAME_SIZE], memory[HUMAN_SIZE];
	uint64_t sum = 0;
	double rate = 0;

	for (size_t i = 0; i < list->n; i++) {
		width = MAX(width, text_columns(name_shown(name, list->rows[i].is.session)));
		busy += text_is(list->rows[i].is.state, "busy");
		sum += list->rows[i].is.memory;
		rate += list->rows[i].rate;
	}
	width = MIN(width, (size_t)32);
	fprintf(out, "%zu session%s, %zu busy; cpu %.0f %%, memory %s\n", list->n, list->n == 1 ? "" : "s", busy,
		rate * 100, human_bytes(memory, sum));
	fprintf(out, "%-*s  %-8s  %-8s  %6s  %8s  %-22s  %-22s  %5s  %-8s  %-8s  %s\n", (int)width, "SESSION",
		"OWNER", "STATE", "CPU %", "CPU s", "MEMORY", "DISK", "PROCS", "IDLE", "AGE", "PROFILE");
	for (size_t i = 0; i < list->n; i++)
		row_put(out, &list->rows[i], (unsigned)width);
}

/* As many lines as fit the terminal, over those of the last time. */
static void screen_draw(char *text)
{
	unsigned wide, high, at = 0;
	size_t more = 0;
	char *rest = text;

	terminal_size(&wide, &high);
	fputs("\033[H", stdout);
	for (const char *line; (line = strsep(&rest, "\n")) && *line; at++) {
		if (high > 3 && at >= high - 2) {
			more++;
			continue;
		}
		line_put(stdout, line, wide);
		fputs("\033[K\r\n", stdout);
	}
	if (more > 0)
		printf("and %zu more", more);
	fputs("\033[J", stdout);
	fflush(stdout);
}

static int list_json(const struct listing *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++) {
		json_t *document = json_session(&list->rows[i].is);

		json_object_set_new(document, "cpu_percent", json_real(list->rows[i].rate * 100));
		json_array_append_new(array, document);
	}
	return json_print(json_pack("{s:o}", "sessions", array));
}

static int list_show(struct listing *list, const char *column, bool json, bool live)
{
	char *text = NULL;
	size_t size;
	FILE *out;

	if (list->n > 0)
		qsort_r(list->rows, list->n, sizeof(*list->rows), row_compare, &column);
	if (json)
		return list_json(list);
	out = open_memstream(&text, &size);
	if (!out)
		return EXIT_TROUBLE;
	list_put(out, list);
	if (fclose(out) == 0 && live)
		screen_draw(text);
	else if (text)
		fputs(text, stdout);
	free(text);
	return ferror(stdout) ? EXIT_TROUBLE : 0;
}

static const char *column_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (strcmp(columns[i], name) == 0)
			return columns[i];
	return NULL;
}

int verb_top(struct cli *cli)
{
	static const struct timespec period = {.tv_sec = PERIOD_S};
	bool live = !cli->json && !cli->once && cli->terminal.is[LAIR_STDOUT];
	const char *column = column_named(cli->sort ? cli->sort : "cpu");
	_cleanup_(listing_deinit) struct listing list = {.n = 0};
	int r;

	if (!column)
		return cli_usage(cli, "--sort: expected cpu, memory, disk, age, idle, owner or name; got \"%s\"",
				 cli->sort);
	r = list_renew(&list, cli);
	while (!r && live) {
		r = list_show(&list, column, false, true);
		(void)nanosleep(&period, NULL);
		if (!r)
			r = list_renew(&list, cli);
	}
	if (r)
		return r;
	(void)nanosleep(&period, NULL);
	r = list_renew(&list, cli);
	return r ? r : list_show(&list, column, cli->json, false);
}
