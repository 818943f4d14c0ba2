/* lair top: the sessions of now, once a second, in one screen. The daemon is asked for its list and nothing else;
 * how busy a session is comes of two lists. What takes the terminal gives it back however the program is ended. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"
#include "name.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>

#define PERIOD_S 1.0
/* If there are many busy sessions, one of them is not measured for each list. Until it is, its rate stays. */
#define RATE_KEPT_S 10.0
#define SLICE_S 0.1
#define ROW_SIZE 1024

struct row {
	char name[CLI_NAME_SIZE], owner[CLI_NAME_SIZE], profile[64], state[16];
	uint64_t uid, memory, memory_limit, disk, disk_limit, tasks;
	double created, idle, cpu, rate, since; /* since: when cpu was last seen to change */
};

enum column { BY_CPU, BY_MEMORY, BY_DISK, BY_AGE, BY_IDLE, BY_OWNER, BY_NAME, _BY_N };

struct top {
	struct cli *cli;
	struct row *rows, *before; /* sorted by name */
	size_t n, n_before;
	enum column column;
	bool reversed, over;
	double ran[2], waited[2]; /* how long half of the cells take, and 99 %, at most; 0: longer than all */
	uint64_t cells;
	int signal;
	struct termios modes;
	bool taken; /* this program has taken the terminal */
};

static const struct {
	const char *name;
	char key;
} orders[] = {
	[BY_CPU] = {"cpu", 'c'},   [BY_MEMORY] = {"memory", 'm'}, [BY_DISK] = {"disk", 'd'},
	[BY_AGE] = {"age", 'a'},   [BY_IDLE] = {"idle", 'i'},	  [BY_OWNER] = {"owner", 'o'},
	[BY_NAME] = {"name", 'n'},
};

static double seconds_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double wall_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- rows ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

static int order(double a, double b)
{
	return (a < b) - (a > b); /* the largest first */
}

static int row_compare(const void *a, const void *b, void *data)
{
	const struct row *one = a, *other = b;
	const struct top *top = data;
	int r = 0;

	switch (top->column) {
	case BY_CPU:
		r = order(one->rate, other->rate);
		break;
	case BY_MEMORY:
		r = order((double)one->memory, (double)other->memory);
		break;
	case BY_DISK:
		r = order((double)one->disk, (double)other->disk);
		break;
	case BY_AGE:
		r = -order(one->created, other->created);
		break;
	case BY_IDLE:
		r = order(one->idle, other->idle);
		break;
	case BY_OWNER:
		r = strcmp(one->owner, other->owner);
		break;
	case BY_NAME:
	case _BY_N:
		break;
	}
	r = r ? r : by_name(one, other);
	return top->reversed ? -r : r;
}

/* Takes from the last list what the row needs: how much CPU time the session has used since, and its owner's name,
 * which takes time to find. */
static void row_continue(struct top *top, struct row *row, double now)
{
	const struct row *last =
		top->n_before ? bsearch(row, top->before, top->n_before, sizeof(*row), by_name) : NULL;

	row->since = now;
	if (last && last->uid == row->uid)
		memcpy(row->owner, last->owner, sizeof(row->owner));
	else
		name_of_user(row->owner, row->uid);
	if (!last || last->created != row->created)
		return;
	if (row->cpu > last->cpu) {
		row->rate = (row->cpu - last->cpu) / (now - last->since);
	} else if (strcmp(row->state, "busy") == 0 && now - last->since < RATE_KEPT_S) {
		row->rate = last->rate;
		row->since = last->since;
	}
}

static void row_fill(struct row *row, const struct lair_session *session)
{
	*row = (struct row){
		.uid = session->uid,
		.memory = session->memory,
		.memory_limit = session->memory_limit,
		.disk = session->disk,
		.disk_limit = session->disk_limit,
		.tasks = session->tasks,
		.created = session->created,
		.idle = session->idle,
		.cpu = session->cpu,
	};
	name_shown(row->name, session->session);
	text_tamed(row->profile, sizeof(row->profile), session->profile);
	text_tamed(row->state, sizeof(row->state), session->state);
}

static int rows_read(struct top *top, const struct lair_call *call)
{
	struct lair_session session;
	size_t cursor = 0, n = 0;
	struct row *rows;

	while (lair_next_session(lair_sessions(call), &cursor, &session))
		n++;
	rows = calloc(n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	free(top->before);
	top->before = top->rows;
	top->n_before = top->n;
	top->rows = rows;
	top->n = 0;
	cursor = 0;
	while (top->n < n && lair_next_session(lair_sessions(call), &cursor, &session))
		row_fill(&rows[top->n++], &session);
	qsort(rows, top->n, sizeof(*rows), by_name);
	for (size_t i = 0; i < top->n; i++)
		row_continue(top, &rows[i], seconds_now());
	return 0;
}

/* ---- the terminal ---- */

static bool signal_came(struct top *top)
{
	static const struct timespec at_once = {.tv_sec = 0};
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal = sigtimedwait(&set, NULL, &at_once);
	if (signal > 0) {
		top->signal = signal;
		top->over = true;
	}
	return top->over;
}

static void on_resize(int signal)
{
	(void)signal; /* the signal ends the wait, and the size is read after that */
}

/* Signals that end us wait until they are asked for. */
static void signals_take(void)
{
	struct sigaction resize = {.sa_handler = on_resize};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)sigaction(SIGWINCH, &resize, NULL);
}

static void say(const char *text, size_t size)
{
	(void)write_all(STDOUT_FILENO, (struct lair_text){.data = text, .size = size});
}

static void terminal_take(struct top *top)
{
	static const char begin[] = "\033[?1049h\033[?25l";
	struct termios modes;

	if (tcgetattr(STDIN_FILENO, &top->modes) == 0) {
		modes = top->modes;
		modes.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
		modes.c_cc[VMIN] = 1;
		modes.c_cc[VTIME] = 0;
		modes.c_cc[VSUSP] = _POSIX_VDISABLE;
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &modes);
		top->taken = true;
	}
	say(begin, sizeof(begin) - 1);
}

static void terminal_give_back(const struct top *top)
{
	static const char end[] = "\033[?25h\033[?1049l";

	say(end, sizeof(end) - 1);
	if (top->taken)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &top->modes);
}

/* ---- drawing ---- */

/* A line of at most @width columns; 0: of any width. */
static void line_put(FILE *out, const char *text, unsigned width)
{
	size_t left = strlen(text), columns = 0, size;
	char one[8];

	for (; left > 0; text += size, left -= size) {
		size = MAX(text_character_size(text, left), (size_t)1);
		snprintf(one, sizeof(one), "%.*s", (int)size, text);
		columns += text_columns(one);
		if (width && columns > width)
			break;
		(void)fwrite(text, 1, size, out);
	}
}

/* @text in so many columns; the rest is cut. */
static void cell_put(FILE *out, const char *text, size_t width)
{
	size_t columns = text_columns(text);

	line_put(out, text, (unsigned)width);
	if (columns < width)
		fprintf(out, "%*s", (int)(width - columns), "");
	fputs("  ", out);
}

static size_t names_width(const struct top *top)
{
	size_t width = strlen("SESSION");

	for (size_t i = 0; i < top->n; i++)
		width = MAX(width, text_columns(top->rows[i].name));
	return MIN(width, (size_t)32);
}

static void row_text(char out[ROW_SIZE], const struct row *row, size_t width)
{
	char text[OF_LIMIT_SIZE];
	FILE *line = fmemopen(out, ROW_SIZE, "w");

	if (!line)
		return;
	cell_put(line, row->name, width);
	cell_put(line, row->owner, 8);
	cell_put(line, row->state, 8);
	fprintf(line, "%6.1f  %8.1f  ", row->rate * 100, row->cpu);
	cell_put(line, human_bytes_of(text, row->memory, row->memory_limit), 22);
	cell_put(line, row->disk_limit ? human_bytes_of(text, row->disk, row->disk_limit) : "-", 22);
	fprintf(line, "%5" PRIu64 "  ", row->tasks);
	cell_put(line, human_seconds(text, row->idle), 8);
	cell_put(line, human_seconds(text, wall_now() - row->created), 8);
	fputs(row->profile, line);
	(void)fclose(line);
}

static void heads_text(char out[ROW_SIZE], size_t width)
{
	snprintf(out, ROW_SIZE, "%-*s  %-8s  %-8s  %6s  %8s  %-22s  %-22s  %5s  %-8s  %-8s  %s", (int)width,
		 "SESSION", "OWNER", "STATE", "CPU %", "CPU s", "MEMORY", "DISK", "PROCS", "IDLE", "AGE",
		 "PROFILE");
}

static void summary_text(char out[ROW_SIZE], const struct top *top)
{
	char memory[HUMAN_SIZE];
	uint64_t sum = 0;
	double rate = 0;
	size_t busy = 0;

	for (size_t i = 0; i < top->n; i++) {
		busy += strcmp(top->rows[i].state, "busy") == 0;
		sum += top->rows[i].memory;
		rate += top->rows[i].rate;
	}
	snprintf(out, ROW_SIZE, "%zu session%s, %zu busy; cpu %.0f %%, memory %s", top->n, top->n == 1 ? "" : "s",
		 busy, rate * 100, human_bytes(memory, sum));
}

static const char *within(char text[static HUMAN_SIZE], double seconds)
{
	if (seconds > 0)
		snprintf(text, HUMAN_SIZE, "%g %s", seconds < 1 ? seconds * 1e3 : seconds,
			 seconds < 1 ? "ms" : "s");
	else
		snprintf(text, HUMAN_SIZE, "longer");
	return text;
}

static void times_text(char out[ROW_SIZE], const struct top *top)
{
	char texts[4][HUMAN_SIZE];

	snprintf(out, ROW_SIZE, "%" PRIu64 " cells: half take at most %s, 99 %% %s; half wait at most %s, 99 %% %s",
		 top->cells, within(texts[0], top->ran[0]), within(texts[1], top->ran[1]),
		 within(texts[2], top->waited[0]), within(texts[3], top->waited[1]));
}

/* @rows, @columns: how large the screen is; 0: as many as there are. */
static void draw(struct top *top, FILE *out, unsigned columns, unsigned rows, const char *end)
{
	size_t width = names_width(top), shown = rows > 5 ? MIN(top->n, (size_t)rows - 5) : top->n;
	struct row *sorted = calloc(top->n + 1, sizeof(*sorted));
	char line[ROW_SIZE] = "";

	if (!sorted)
		return;
	if (top->n > 0)
		memcpy(sorted, top->rows, top->n * sizeof(*sorted));
	qsort_r(sorted, top->n, sizeof(*sorted), row_compare, top);
	heads_text(line, width);
	line_put(out, line, columns);
	fputs(end, out);
	for (size_t i = 0; i < shown; i++) {
		row_text(line, &sorted[i], width);
		line_put(out, line, columns);
		fputs(end, out);
	}
	if (shown < top->n) {
		snprintf(line, sizeof(line), "and %zu more", top->n - shown);
		line_put(out, line, columns);
		fputs(end, out);
	}
	free(sorted);
}

static void screen_draw(struct top *top)
{
	char line[ROW_SIZE], help[ROW_SIZE];
	unsigned columns, rows;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	terminal_size(&columns, &rows);
	fputs("\033[H", out);
	summary_text(line, top);
	line_put(out, line, columns);
	fputs("\033[K\r\n", out);
	times_text(line, top);
	line_put(out, line, columns);
	fputs("\033[K\r\n", out);
	snprintf(help, sizeof(help),
		 "by %s%s; c m d a i o n: by cpu, memory, disk, age, idle, owner, name; r turns; q ends",
		 orders[top->column].name, top->reversed ? ", turned" : "");
	line_put(out, help, columns);
	fputs("\033[K\r\n", out);
	draw(top, out, columns, rows, "\033[K\r\n");
	fputs("\033[J", out);
	if (fclose(out) == 0)
		say(text, size);
	free(text);
}

/* ---- asking ---- */

static int answer_await(struct top *top, int started, struct lair_call **callp)
{
	double until = seconds_now() + (top->cli->timeout > 0 ? top->cli->timeout : 30.0);
	int r = started;

	while (!r && !signal_came(top)) {
		r = lair_wait(*callp, SLICE_S);
		if (r != -ETIMEDOUT || seconds_now() > until)
			return r;
		r = 0;
	}
	return r;
}

/* The limit within which @part of @n cells are. */
static double limit_of(const struct lair_counters *counters, bool waited, double part)
{
	struct lair_times times = {.most = 0};
	double n = 0;
	size_t cursor = 0;

	while (lair_next_times(counters->times, &cursor, &times)) {
		n += (double)(waited ? times.waited : times.ran);
		if (n >= part)
			return times.most;
	}
	return 0;
}

static void times_read(struct top *top, const struct lair_counters *counters)
{
	static const double parts[] = {0.5, 0.99};
	struct lair_times times;
	size_t cursor = 0;

	top->cells = 0;
	while (lair_next_times(counters->times, &cursor, &times))
		top->cells += times.ran;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		top->ran[i] = limit_of(counters, false, parts[i] * (double)top->cells);
		top->waited[i] = limit_of(counters, true, parts[i] * (double)top->cells);
	}
}

static int rows_renew(struct top *top)
{
	_cleanup_(call_freep) struct lair_call *call = NULL, *stats = NULL;
	int r = answer_await(top, lair_list(top->cli->lair, &call), &call);

	if (!r && !top->over)
		r = answer_await(top, lair_stats(top->cli->lair, &stats), &stats);
	if (r || top->over)
		return r;
	times_read(top, lair_counters(stats));
	return rows_read(top, call);
}

static void key_take(struct top *top, char key)
{
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		if (orders[i].key == key)
			top->column = (enum column)i;
	top->reversed ^= key == 'r';
	top->over |= key == 'q';
}

/* Waits until the next list is due. Keys that are typed act at once. */
static void keys_wait(struct top *top, double until)
{
	struct pollfd in = {.fd = top->taken ? STDIN_FILENO : -1, .events = POLLIN};
	char key;

	while (!signal_came(top) && seconds_now() < until) {
		double left = MIN(until - seconds_now(), SLICE_S);
		int r = poll(&in, 1, (int)(MAX(left, 0.0) * 1e3) + 1);

		if (r > 0 && read(STDIN_FILENO, &key, 1) == 1)
			key_take(top, key);
		else if (r > 0)
			in.fd = -1;
		if (r != 0 && !top->over)
			screen_draw(top);
	}
}

static int watch(struct top *top)
{
	int r = 0;

	terminal_take(top);
	while (!r && !top->over) {
		double due = seconds_now() + PERIOD_S;

		r = rows_renew(top);
		if (!r && !top->over) {
			screen_draw(top);
			keys_wait(top, due);
		}
	}
	terminal_give_back(top);
	return r;
}

/* ---- once ---- */

static int once_json(struct top *top)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_session session;
	json_t *array = json_array();
	size_t cursor = 0;
	int r = answer_await(top, lair_list(top->cli->lair, &call), &call);

	if (!r && !top->over)
		r = rows_read(top, call);
	while (!r && !top->over && lair_next_session(lair_sessions(call), &cursor, &session)) {
		json_t *document = json_session(&session);
		struct row row = {.rate = 0};
		const struct row *found;

		name_shown(row.name, session.session);
		found = bsearch(&row, top->rows, top->n, sizeof(row), by_name);
		json_object_set_new(document, "cpu_percent", json_real(found ? found->rate * 100 : 0));
		json_array_append_new(array, document);
	}
	if (r || top->over) {
		json_decref(array);
		return r;
	}
	return json_print(json_pack("{s:o}", "sessions", array));
}

static int once(struct top *top)
{
	char line[ROW_SIZE];
	int r = rows_renew(top);

	keys_wait(top, seconds_now() + PERIOD_S);
	if (r || top->over)
		return r;
	if (top->cli->json)
		return once_json(top);
	r = rows_renew(top);
	if (r || top->over)
		return r;
	summary_text(line, top);
	puts(line);
	times_text(line, top);
	puts(line);
	draw(top, stdout, 0, 0, "\n");
	return 0;
}

static bool column_find(enum column *columnp, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		if (strcmp(orders[i].name, name) == 0) {
			*columnp = (enum column)i;
			return true;
		}
	}
	return false;
}

int verb_top(struct cli *cli)
{
	struct top top = {.cli = cli, .column = BY_CPU};
	int r;

	if (cli->sort && !column_find(&top.column, cli->sort))
		return cli_usage(cli, "--sort: expected cpu, memory, disk, age, idle, owner or name; got \"%s\"",
				 cli->sort);
	signals_take();
	r = cli->json || cli->once || !cli->terminal.is[LAIR_STDOUT] ? once(&top) : watch(&top);
	free(top.rows);
	free(top.before);
	if (top.signal)
		return 128 + top.signal;
	return r < 0 || r > EXIT_TROUBLE ? cli_trouble(cli, r) : r;
}
