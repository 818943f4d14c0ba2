/* Directives: a cell that is one of these lines goes to laird instead of the interpreter, since it is about the
 * session's states. */
#include "bridge.h"

#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { WORDS_MAX = 8 };

struct directive {
	const char *name, *usage, *summary;
	int least, most; /* words after the name */
	step *begin;
};

static void undo_begin(struct job *job);
static void checkpoint_begin(struct job *job);
static void restore_begin(struct job *job);
static void drop_begin(struct job *job);
static void branch_begin(struct job *job);
static void checkpoints_begin(struct job *job);
static void diff_begin(struct job *job);
static void output_begin(struct job *job);
static void help_begin(struct job *job);

static const struct directive directives[] = {
	{"undo", "[N]", "go back to the state before the last cell, or the last N cells", 0, 1, undo_begin},
	{"checkpoint", "NAME", "keep the state of now, under a name", 1, 1, checkpoint_begin},
	{"checkpoints", "", "list the states that are kept", 0, 0, checkpoints_begin},
	{"restore", "NAME", "go back to a kept state, by name or by the number of its cell", 1, 1, restore_begin},
	{"drop", "NAME", "forget a kept state", 1, 1, drop_begin},
	{"branch", "NAME", "make a session that goes on from the state of now; this notebook stays in its own", 1,
	 1, branch_begin},
	{"diff", "[NAME]",
	 "say what has changed, in variables and in files, since a kept state, or in the last cell", 0, 1,
	 diff_begin},
	{"output", "[CELL]", "show again what a cell has shown, or the last one, as long as laird keeps it", 0, 1,
	 output_begin},
	{"help", "", "say this", 0, 0, help_begin},
};

static const struct directive *directive_find(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(directives); i++)
		if (word[0] == '%' && strcmp(directives[i].name, word + 1) == 0)
			return &directives[i];
	return NULL;
}

static const char *argument(const struct job *job)
{
	return job->words[1];
}

#define say(job, ...) line_show(job, LAIR_STDOUT, __VA_ARGS__)

/* Whether laird has done it; if not, the cell has failed. */
static bool done(struct job *job)
{
	if (!lair_outcome(job->call))
		return true;
	execute_refused(job);
	return false;
}

static const char *session_of(const struct job *job)
{
	return job->bridge->session;
}

static struct lair *lair_of(const struct job *job)
{
	return job->bridge->lair;
}

/* ---- going back ---- */

static void say_back(struct job *job)
{
	const struct lair_state *state = lair_state(job->call);
	uint64_t more = state->effects.more;
	struct lair_effect effect;
	char text[HUMAN_SIZE], words[EFFECT_SIZE];
	size_t cursor = 0;

	state_back(job->bridge, state->cell);
	say(job, "The session is in %s.", human_state(text, state->cell));
	while (lair_next_effect(state->effects.items, &cursor, &effect))
		say(job, "Not undone: %s", human_effect(words, &effect));
	if (more > 0)
		say(job, "Not undone: %" PRIu64 " more", more);
}

static void back_done(struct job *job)
{
	if (!done(job))
		return;
	say_back(job);
	execute_done(job);
}

/* How many states of the session @n cells of the notebook are. */
static uint64_t states_of(const struct bridge *bridge, uint64_t n)
{
	uint64_t states = 0;

	for (size_t i = bridge->n_states; i-- > 0 && n > 0;) {
		states++;
		if (bridge->states[i].shown)
			n--;
	}
	return states + n;
}

static void undo_begin(struct job *job)
{
	const char *word = argument(job);
	uint64_t n = 1;

	if ((word && !text_number(word, &n)) || n == 0 || n > 100000) {
		execute_refuse(job, "UsageError", "%undo: expected how many cells");
		return;
	}
	job_wait(job, lair_undo(lair_of(job), &job->call, session_of(job), states_of(job->bridge, n), false),
		 back_done);
}

static void restore_begin(struct job *job)
{
	job_wait(job, lair_restore(lair_of(job), &job->call, session_of(job), argument(job), false), back_done);
}

/* ---- keeping ---- */

static void checkpoint_done(struct job *job)
{
	char text[HUMAN_SIZE];

	if (!done(job))
		return;
	say(job, "Kept as \"%s\": %s. %%restore %s goes back to it.", argument(job),
	    human_state(text, lair_state(job->call)->cell), argument(job));
	execute_done(job);
}

static void checkpoint_begin(struct job *job)
{
	job_wait(job, lair_checkpoint(lair_of(job), &job->call, session_of(job), argument(job)), checkpoint_done);
}

static void drop_done(struct job *job)
{
	if (done(job))
		execute_done(job);
}

static void drop_begin(struct job *job)
{
	job_wait(job, lair_drop(lair_of(job), &job->call, session_of(job), argument(job)), drop_done);
}

static void checkpoints_done(struct job *job)
{
	struct lair_checkpoint kept;
	char age[HUMAN_SIZE], memory[HUMAN_SIZE];
	size_t cursor = 0;

	if (!done(job))
		return;
	say(job, "%8s  %-20s %10s %12s", "CELL", "NAME", "AGE", "MEMORY");
	while (lair_next_checkpoint(lair_checkpoint_list(job->call), &cursor, &kept))
		say(job, "%8" PRIu64 "  %-20.*s %10s %12s", kept.cell, (int)kept.name.size,
		    kept.name.data ? kept.name.data : "", human_seconds(age, kept.age),
		    human_bytes(memory, kept.memory));
	execute_done(job);
}

static void checkpoints_begin(struct job *job)
{
	job_wait(job, lair_checkpoints(lair_of(job), &job->call, session_of(job)), checkpoints_done);
}

static void branch_done(struct job *job)
{
	if (!done(job))
		return;
	say(job,
	    "Session \"%s\" begins in the state of now. A notebook goes on in it with the kernel of `lair "
	    "jupyter install --session %s`, a prompt with `lair repl -s %s`.",
	    argument(job), argument(job), argument(job));
	execute_done(job);
}

static void branch_begin(struct job *job)
{
	struct lair_branch branch = {.session = session_of(job), .branch = argument(job)};

	job_wait(job, lair_branch(lair_of(job), &job->call, &branch), branch_done);
}

/* ---- differences ---- */

static void say_variable(struct job *job, const struct lair_variable_difference *it)
{
	int name = (int)it->name.size;

	if (it->text_before.data)
		say(job, "- %.*s = %.*s", name, it->name.data, (int)it->text_before.size, it->text_before.data);
	say(job, "%c %.*s = %.*s", it->change.data[0] == 'g' ? '-' : '+', name, it->name.data, (int)it->text.size,
	    it->text.data ? it->text.data : "");
}

static void say_file(struct job *job, const struct lair_file_difference *it)
{
	char path[512], was[512], before[HUMAN_SIZE], after[HUMAN_SIZE];

	text_tamed(path, sizeof(path), it->path);
	human_bytes(before, it->size_before);
	human_bytes(after, it->size);
	if (it->was.data)
		say(job, "file %s: renamed, it was %s", path, text_tamed(was, sizeof(was), it->was));
	else if (it->size == it->size_before)
		say(job, "file %s: %.*s, %s", path, (int)it->change.size, it->change.data, after);
	else
		say(job, "file %s: %.*s, %s -> %s", path, (int)it->change.size, it->change.data, before, after);
}

static void diff_done(struct job *job)
{
	struct lair_variable_difference variable;
	const struct lair_difference *difference;
	struct lair_file_difference file;
	size_t cursor = 0, told = 0;
	char why[256];

	if (!done(job))
		return;
	difference = lair_difference(job->call);
	for (; lair_next_variable_difference(difference->variables, &cursor, &variable); told++)
		say_variable(job, &variable);
	for (cursor = 0; lair_next_file_difference(difference->files, &cursor, &file); told++)
		say_file(job, &file);
	if (difference->variables_more + difference->files_more > 0)
		say(job, "And %" PRIu64 " more.", difference->variables_more + difference->files_more);
	if (difference->variables_lack.data)
		say(job, "Of variables nothing is known: %s.",
		    text_tamed(why, sizeof(why), difference->variables_lack));
	else if (told == 0)
		say(job, "Nothing is different.");
	execute_done(job);
}

static void diff_begin(struct job *job)
{
	const struct bridge *bridge = job->bridge;
	uint64_t back = states_of(bridge, 1);
	const char *since = argument(job);
	char from[32];

	if (!since && back < bridge->n_states) {
		snprintf(from, sizeof(from), "%" PRIu64, bridge->states[bridge->n_states - 1 - back].cell);
		since = from;
	}
	job_wait(job, lair_diff(lair_of(job), &job->call, session_of(job), since, NULL), diff_done);
}

/* ---- the output of a cell, again ---- */

static void output_done(struct job *job)
{
	const struct lair_result *result;
	struct lair_display display;
	size_t cursor = 0;

	if (!done(job))
		return;
	result = lair_result(job->call);
	output_gather(job->bridge, LAIR_STDOUT, result->out);
	output_gather(job->bridge, LAIR_STDERR, result->err);
	while (lair_next_display(result->displays, &cursor, &display))
		show_display(job, &display);
	if (result->text.data)
		output_gather(job->bridge, LAIR_STDOUT, result->text);
	output_gather(job->bridge, LAIR_STDERR, result->error_traceback);
	execute_done(job);
}

static uint64_t last_shown(const struct bridge *bridge)
{
	for (size_t i = bridge->n_states; i-- > 0;)
		if (bridge->states[i].shown)
			return bridge->states[i].cell;
	return bridge->cells;
}

static void output_begin(struct job *job)
{
	struct lair_attach attach = {
		.session = session_of(job),
		.cell = argument(job) ? strtoull(argument(job), NULL, 10) : last_shown(job->bridge),
	};

	if (attach.cell == 0)
		execute_refuse(job, "UsageError", "%output: expected the number of a cell");
	else
		job_wait(job, lair_attach(lair_of(job), &job->call, &attach), output_done);
}

/* ---- */

static void help_begin(struct job *job)
{
	for (size_t i = 0; i < ARRAY_SIZE(directives); i++)
		say(job, "%%%-12s %-8s %s", directives[i].name, directives[i].usage, directives[i].summary);
	say(job, "The other magics are IPython's: %%lsmagic lists them.");
	execute_done(job);
}

/* A directive is alone in its cell, on one line. */
static bool is_line(const char *code)
{
	size_t start = strspn(code, " \t\r\n"), end = start + strcspn(code + start, "\r\n");

	return code[start] == '%' && isalpha((unsigned char)code[start + 1]) &&
	       code[end + strspn(code + end, " \t\r\n")] == '\0';
}

bool directive_begin(struct job *job, const char *code)
{
	const struct directive *directive;
	char usage[128];
	int n;

	if (!is_line(code))
		return false;
	job->text = strdup(code);
	job->words = calloc(WORDS_MAX + 1, sizeof(*job->words));
	n = job->text && job->words ? text_words(job->words, WORDS_MAX, job->text) : 0;
	directive = n > 0 ? directive_find(job->words[0]) : NULL;
	if (!directive)
		return false;
	if (n - 1 < directive->least || n - 1 > directive->most) {
		snprintf(usage, sizeof(usage), "expected %%%s %s", directive->name, directive->usage);
		execute_refuse(job, "UsageError", usage);
		return true;
	}
	directive->begin(job);
	return true;
}
