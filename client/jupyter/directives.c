/* What no other kernel has: a cell that is one of these lines goes to laird instead of the interpreter, since it is
 * about the session's states. */
#include "bridge.h"

#include "text.h"

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
	{"diff", "[NAME]", "say which variables are others than in a kept state, or before the last cell", 0, 1,
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

static void say(struct job *job, const char *format, ...) _printf_(2, 3);

static void say(struct job *job, const char *format, ...)
{
	_cleanup_(freep) char *line = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&line, format, args);
	va_end(args);
	if (n < 0) {
		line = NULL;
		return;
	}
	output_gather(job->bridge, LAIR_STDOUT, lair_text(text_tame(line)));
	output_gather(job->bridge, LAIR_STDOUT, lair_text("\n"));
}

/* Whether laird has done it; if not, the cell has failed. */
static bool done(struct job *job)
{
	if (!lair_outcome(job->call))
		return true;
	execute_refuse(job, "LairError", lair_call_error(job->call));
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
	char *end = NULL;
	uint64_t n = word ? strtoull(word, &end, 10) : 1;

	if (n == 0 || n > 100000 || (end && *end)) {
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

/* ---- what has changed: the variables of a branch of the earlier state, beside those of now ---- */

static bool variable_find(struct lair_items items, struct lair_text name, struct lair_variable *found)
{
	size_t cursor = 0;

	while (lair_next_variable(items, &cursor, found))
		if (found->name.size == name.size && memcmp(found->name.data, name.data, name.size) == 0)
			return true;
	return false;
}

static bool text_same(struct lair_text a, struct lair_text b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static void say_variable(struct job *job, char sign, const struct lair_variable *it)
{
	char shape[96] = "";
	uint64_t length;
	size_t cursor = 0, n = 0;

	while (lair_next_number(it->shape, &cursor, &length) && n < sizeof(shape))
		n += (size_t)snprintf(shape + n, sizeof(shape) - n, "%s%" PRIu64, n ? " x " : " # ", length);
	/* Of a list its text says enough. */
	say(job, "%c %.*s = %.*s%s", sign, (int)it->name.size, it->name.data, (int)it->text.size,
	    it->text.data ? it->text.data : "", strstr(shape, " x ") ? shape : "");
}

static void diff_tell(struct job *job, struct lair_items before, struct lair_items now)
{
	struct lair_variable one, other;
	size_t cursor = 0, told = 0;

	while (lair_next_variable(before, &cursor, &one)) {
		bool there = variable_find(now, one.name, &other);

		if (there && text_same(one.text, other.text) && text_same(one.type, other.type) &&
		    one.size == other.size)
			continue;
		say_variable(job, '-', &one);
		if (there)
			say_variable(job, '+', &other);
		told++;
	}
	for (cursor = 0; lair_next_variable(now, &cursor, &one);)
		if (!variable_find(before, one.name, &other)) {
			say_variable(job, '+', &one);
			told++;
		}
	if (told == 0)
		say(job, "No variable looks different.");
}

static void branch_end(struct job *job)
{
	struct lair_call *call = NULL;

	if (job->name)
		(void)lair_shutdown(lair_of(job), &call, job->name);
	(void)lair_call_free(call);
}

static void diff_now(struct job *job)
{
	if (done(job)) {
		diff_tell(job, lair_variables(job->other)->variables, lair_variables(job->call)->variables);
		execute_done(job);
	}
}

static void diff_before(struct job *job)
{
	branch_end(job);
	if (!done(job))
		return;
	job->other = steal_ptr(&job->call);
	job_wait(job, lair_vars(lair_of(job), &job->call, session_of(job), NULL), diff_now);
}

static void diff_branched(struct job *job)
{
	if (!done(job))
		return;
	job->call = lair_call_free(job->call);
	job_wait(job, lair_vars(lair_of(job), &job->call, job->name, NULL), diff_before);
}

static void diff_begin(struct job *job)
{
	const struct bridge *bridge = job->bridge;
	uint64_t back = states_of(bridge, 1);
	char from[32] = "0";
	struct lair_branch branch = {.session = session_of(job), .from = from};

	if (argument(job))
		branch.from = argument(job);
	else if (back < bridge->n_states)
		snprintf(from, sizeof(from), "%" PRIu64, bridge->states[bridge->n_states - 1 - back].cell);
	if (asprintf(&job->name, "diff-%.16s-%" PRIu64, bridge->identity, bridge->n_sent) < 0)
		job->name = NULL;
	branch.branch = job->name;
	job_wait(job, job->name ? lair_branch(lair_of(job), &job->call, &branch) : -ENOMEM, diff_branched);
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

/* Cut @line at its spaces, up to WORDS_MAX words. */
static int words_split(char **words, char *line)
{
	char *rest = NULL, *word = strtok_r(line, " \t\r\n", &rest);
	int n = 0;

	for (; word && n < WORDS_MAX; word = strtok_r(NULL, " \t\r\n", &rest))
		words[n++] = word;
	words[n] = NULL;
	return n;
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
	n = job->text && job->words ? words_split(job->words, job->text) : 0;
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
