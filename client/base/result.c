/* The notes on a result. A note without a function does not compile. */
#include "result.h"

#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

/* So many items of a list are named; the others are counted. */
#define LISTED 8
#define NUMBER_SIZE 24
#define WORDS_SIZE NAMES_SIZE

static const struct note_style for_programs = {.models = false};

const struct lair_ended ended_unknown = {.why = {"unknown", sizeof("unknown") - 1}};

/* ---- sentences ---- */

/* A text in a buffer; it is cut when that is full. */
struct words {
	size_t used;
	char text[WORDS_SIZE];
};

static void words_put(struct words *words, const char *format, ...) _printf_(2, 3);

static void words_put(struct words *words, const char *format, ...)
{
	size_t left = sizeof(words->text) - words->used;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(words->text + words->used, left, format, args);
	va_end(args);
	words->used += MIN((size_t)MAX(n, 0), left - 1);
}

/* @text with the next of @args in the place of each %s; NULL ends them. */
static void fill_with(struct words *out, const char *text, const char *const *args)
{
	const char *at;

	for (; *args && (at = strstr(text, "%s")); text = at + 2)
		words_put(out, "%.*s%s", (int)(at - text), text, *args++);
	words_put(out, "%s", text);
}

#define fill(out, text, ...) fill_with(out, text, (const char *const[]){__VA_ARGS__, NULL})

static const char *number_text(char out[static NUMBER_SIZE], uint64_t number)
{
	snprintf(out, NUMBER_SIZE, "%" PRIu64, number);
	return out;
}

/* As in "a, b and 2 more". */
struct list {
	uint64_t n, more;
	struct words words;
};

/* Whether there is room for one more item, which is put next. */
static bool list_next(struct list *list)
{
	if (list->n == LISTED) {
		list->more++;
		return false;
	}
	words_put(&list->words, "%s", list->n++ ? ", " : "");
	return true;
}

static void list_fill(struct words *out, const char *text, struct list *list)
{
	if (list->more > 0)
		words_put(&list->words, "%s%" PRIu64 " more", list->n ? " and " : "", list->more);
	if (list->n > 0 || list->more > 0)
		fill(out, text, list->words.text);
}

/* ---- what became of the code and of the session ---- */

enum cause result_cause(const struct lair_result *result)
{
	return cause_of(result->cause.data, result->cause.size);
}

enum fate result_fate(const struct lair_result *result)
{
	return fate_of(result->state.data, result->state.size);
}

bool result_continues(const struct lair_result *result)
{
	return fates[result_fate(result)].goes_on;
}

bool result_left(const struct lair_result *result)
{
	return result_cause(result) == CAUSE_EXIT && result_continues(result);
}

static bool text_has(struct lair_text text, struct lair_text part)
{
	return part.size == 0 || (text.size > 0 && memmem(text.data, text.size, part.data, part.size));
}

bool refusal_show(const struct lair_blocked *act, const struct lair_result *result)
{
	return text_has(result->error_value, act->target) && text_has(result->error_value, act->reason);
}

/* If the cell came to its end by itself and the session did not stay, that was before the cell. */
static bool fate_came_before(const struct lair_result *result)
{
	return !result_continues(result) && result_fate(result) != FATE_ENDED &&
	       (result->text.data || result->error_name.data ||
		(result->returncode == 0 && result_cause(result) != CAUSE_EXIT));
}

const char *human_ended(char out[static ENDED_SIZE], const struct lair_ended *ended)
{
	const struct cause_row *row = &causes[cause_of(ended->why.data, ended->why.size)];
	struct words words = {.used = 0};
	char other[64], age[HUMAN_SIZE];

	fill(&words, row->session ? row->session : DEATH_SESSION, text_tamed(other, sizeof(other), ended->why));
	words_put(&words, "%s", ended->by_root ? " by root" : "");
	if (ended->when > 0)
		words_put(&words, ", %s ago", human_seconds(age, (double)time(NULL) - ended->when));
	return text_cut(out, ENDED_SIZE, words.text);
}

const char *cause_words(char out[static CAUSE_SIZE], const struct lair_result *result,
			const struct note_style *style)
{
	enum cause cause = result_cause(result);
	const struct cause_row *row = &causes[cause];
	bool measured = row->measure && (cause == CAUSE_EXIT || result->limit > 0);
	struct words words = {.used = 0};
	char of[64];

	if (cause == CAUSE_EXIT)
		snprintf(of, sizeof(of), "%d", result->returncode);
	else if (measured)
		snprintf(of, sizeof(of), "%g", result->limit);
	else
		text_tamed(of, sizeof(of), result->cause);
	if (row->cell)
		fill(&words, measured ? row->measure : row->cell, of);
	if (row->cell && style->hints[cause])
		words_put(&words, "%s", style->hints[cause]);
	return text_cut(out, CAUSE_SIZE, words.text);
}

const char *human_names(char out[static NAMES_SIZE], struct lair_items names, struct lair_items refused)
{
	struct words words = {.used = 0};
	struct list list = {.n = 0};
	struct lair_refused item;
	struct lair_text name;
	size_t cursor = 0;
	uint64_t n = 0;

	while (lair_next_text(names, &cursor, &name))
		n++;
	words_put(&words, "%" PRIu64 " name%s", n, n == 1 ? "" : "s");
	for (cursor = 0; lair_next_refused(refused, &cursor, &item);)
		if (list_next(&list))
			words_put(&list.words, "%.*s (%.*s)", (int)MIN(item.name.size, 64U), item.name.data,
				  (int)MIN(item.reason.size, 200U), item.reason.data);
	list_fill(&words, "; not %s", &list);
	return text_tame(strcpy(out, words.text));
}

/* ---- the notes ---- */

struct telling {
	const struct lair_result *result;
	const struct note_style *style;
	const char *text; /* of the table */
	struct words words;
};

#define say(it, ...) fill(&(it)->words, (it)->text, __VA_ARGS__)

/* Words that a session or laird has sent, if there are any. */
static void say_text(struct telling *it, struct lair_text words)
{
	char cut[1024];

	if (words.size > 0)
		say(it, text_tamed(cut, sizeof(cut), words));
}

static void say_list(struct telling *it, struct list *list)
{
	list_fill(&it->words, it->text, list);
}

/* Sizes of stdout and stderr. */
static void say_sizes(struct telling *it, uint64_t out, uint64_t err)
{
	char number[NUMBER_SIZE];

	if (out > 0)
		say(it, number_text(number, out), "stdout");
	if (out > 0 && err > 0)
		words_put(&it->words, "; ");
	if (err > 0)
		say(it, number_text(number, err), "stderr");
}

/* Each writes its note, if there is something to tell. */

static void ended_write(struct telling *it)
{
	const struct lair_ended *ended = &it->result->ended;
	bool own = cause_of(ended->why.data, ended->why.size) == CAUSE_SHUTDOWN && !ended->by_root;
	char words[ENDED_SIZE];

	/* A user knows the sessions that he has shut down. */
	if (ended->why.data && (it->style->models || !own))
		say(it, human_ended(words, ended),
		    it->result->loaded.age > 0 ? "files and all that did not come back" : "variables and files",
		    it->style->renew ? it->style->renew : "");
}

static void damaged_write(struct telling *it)
{
	struct lair_text why =
		it->result->loaded.damaged.data ? it->result->loaded.damaged : it->result->ended.not_saved;

	say_text(it, why);
}

static void loaded_write(struct telling *it)
{
	char age[HUMAN_SIZE], names[NAMES_SIZE];

	if (it->result->loaded.age > 0)
		say(it, human_seconds(age, it->result->loaded.age),
		    human_names(names, it->result->loaded.names, it->result->loaded.refused));
}

/* If a refusal has ended the code, the error tells it. */
static void blocked_write(struct telling *it)
{
	struct list list = {.n = 0};
	struct lair_blocked act;
	char target[160], reason[64];
	size_t cursor = 0;

	while (lair_next_blocked(it->result->blocked, &cursor, &act))
		if (!refusal_show(&act, it->result) && list_next(&list))
			words_put(&list.words, "%s (%s)",
				  text_tamed(target, sizeof(target), act.target.size ? act.target : act.event),
				  text_tamed(reason, sizeof(reason), act.reason));
	say_list(it, &list);
}

static void cause_write(struct telling *it)
{
	const struct cause_row *row = &causes[result_cause(it->result)];
	bool goes_on = result_continues(it->result) || !it->result->session.data;
	char words[CAUSE_SIZE];

	if (!row->cell || fate_came_before(it->result) ||
	    (goes_on && (it->style->models ? it->result->returncode == 0 : !row->news)))
		return;
	say(it, cause_words(words, it->result, it->style), "");
}

static void fate_write(struct telling *it)
{
	enum fate fate = result_fate(it->result);
	struct words words = {.used = 0};
	char state[HUMAN_SIZE];
	const char *what = it->result->back.stay.data ? "variables" : "variables and files";

	if (!it->result->session.data || !it->result->state.data)
		return;
	if (!fates[fate].goes_on) {
		fill(&words, fates[fate].text, human_state(state, it->result->restored), what);
		say(it, words.text, fate_came_before(it->result) ? FATE_BEFORE : "");
		if (fate_came_before(it->result) && it->result->returncode == 0 && it->result->cause.data)
			words_put(&it->words, " (%.*s)", (int)MIN(it->result->cause.size, 64U),
				  it->result->cause.data);
	} else if (it->style->models && it->result->returncode != 0) {
		say(it, result_cause(it->result) == CAUSE_FORBIDDEN ? FATE_UNCHANGED : fates[fate].text, "");
	}
}

static void back_write(struct telling *it)
{
	struct list list = {.more = it->result->back.more};
	struct lair_file_back file;
	char path[512], change[16];
	size_t cursor = 0;

	while (lair_next_file_back(it->result->back.items, &cursor, &file))
		if (list_next(&list))
			words_put(&list.words, "%s %s", text_tamed(change, sizeof(change), file.change),
				  text_tamed(path, sizeof(path), file.path));
	say_list(it, &list);
}

static void stay_write(struct telling *it)
{
	say_text(it, it->result->back.stay);
}

static void effects_write(struct telling *it)
{
	struct list list = {.more = it->result->effects.more};
	struct lair_effect effect;
	char words[EFFECT_SIZE];
	size_t cursor = 0;

	while (lair_next_effect(it->result->effects.items, &cursor, &effect))
		if (list_next(&list))
			words_put(&list.words, "%s", human_effect(words, &effect));
	say_list(it, &list);
}

static void unkept_write(struct telling *it)
{
	say_text(it, it->result->files_unkept);
}

/* As long as that stays so, each time with how far a crash would go back. */
static void unfaithful_write(struct telling *it)
{
	char cell[NUMBER_SIZE], why[1024];

	if (it->result->unfaithful.data && it->result->session.data)
		say(it, number_text(cell, it->result->cell), text_tamed(why, sizeof(why), it->result->unfaithful));
}

static void stray_write(struct telling *it)
{
	say_sizes(it, it->result->out_stray, it->result->err_stray);
}

static void dropped_write(struct telling *it)
{
	say_sizes(it, it->result->out_dropped, it->result->err_dropped);
}

static void displays_write(struct telling *it)
{
	char number[NUMBER_SIZE];

	if (it->result->displays_dropped > 0)
		say(it, number_text(number, it->result->displays_dropped));
}

static void artifacts_write(struct telling *it)
{
	if (it->result->artifacts_more && it->result->session.data)
		say(it, NULL);
}

static const struct {
	void (*write)(struct telling *it);
	const char *name, *text;
} notes[] = {
#define NOTE_ROW(id, name_, text_) [NOTE_##id] = {name_##_write, #name_, text_},
	NOTES(NOTE_ROW)
#undef NOTE_ROW
};

void result_notes(const struct lair_result *result, const struct note_style *style, note_tell *tell, void *userdata)
{
	for (enum note note = 0; note < N_NOTES; note++) {
		struct telling it = {result, style ? style : &for_programs, notes[note].text, {.used = 0}};

		if (!it.style->skip[note])
			notes[note].write(&it);
		if (it.words.used > 0 && it.style->sentences) {
			it.words.text[0] -= it.words.text[0] >= 'a' && it.words.text[0] <= 'z' ? 'a' - 'A' : 0;
			words_put(&it.words, ".");
		}
		if (it.words.used > 0)
			tell(userdata, note, text_tame(it.words.text));
	}
}

/* ---- the document ---- */

static void note_append(void *array, enum note note, const char *sentence)
{
	json_array_append_new(array, json_pack("{s:s, s:s}", "about", notes[note].name, "text", sentence));
}

void json_add_notes(json_t *object, const struct lair_result *result)
{
	json_t *array = json_array();

	result_notes(result, NULL, note_append, array);
	if (json_array_size(array) > 0)
		json_object_set(object, "notes", array);
	json_decref(array);
}

static json_t *result_blocked(const struct lair_result *result)
{
	json_t *array = json_array();
	struct lair_blocked act;
	size_t cursor = 0;

	while (lair_next_blocked(result->blocked, &cursor, &act))
		json_array_append_new(array, json_pack("{s:o, s:o, s:o}", "event", json_text(act.event), "target",
						       json_text(act.target), "reason", json_text(act.reason)));
	return array;
}

static json_t *result_truncated(const struct lair_result *result)
{
	if (!result->out_dropped && !result->err_dropped)
		return json_false();
	return json_pack("{s:I, s:I}", "stdout", (json_int_t)result->out_dropped, "stderr",
			 (json_int_t)result->err_dropped);
}

static json_t *result_stray(const struct lair_result *result)
{
	if (!result->out_stray && !result->err_stray)
		return json_false();
	return json_pack("{s:I, s:I}", "stdout", (json_int_t)result->out_stray, "stderr",
			 (json_int_t)result->err_stray);
}

json_t *json_result(const struct lair_result *result)
{
	json_t *document = json_pack("{s:o, s:I, s:i, s:o, s:o}", "session", json_text(result->session), "cell",
				     (json_int_t)result->cell, "returncode", result->returncode, "state",
				     json_text(result->state), "cause", json_text(result->cause));

	json_add_output(document, "stdout", result->out);
	json_add_output(document, "stderr", result->err);
	json_object_set_new(document, "text", json_text(result->text));
	json_object_set_new(document, "data", json_data(result->data));
	json_object_set_new(document, "displays", json_displays(result));
	json_object_set_new(document, "displays_dropped", json_integer((json_int_t)result->displays_dropped));
	json_object_set_new(document, "error", json_error(result));
	json_object_set_new(document, "truncated", result_truncated(result));
	json_object_set_new(document, "stray", result_stray(result));
	json_object_set_new(document, "blocked", result_blocked(result));
	json_object_set_new(document, "artifacts", json_artifacts(result));
	json_object_set_new(document, "artifacts_more", json_boolean(result->artifacts_more));
	json_object_set_new(document, "restored",
			    result_fate(result) == FATE_ROLLED_BACK ? json_integer((json_int_t)result->restored)
								    : json_null());
	json_object_set_new(document, "unfaithful", json_text(result->unfaithful));
	if (result->language.data)
		json_object_set_new(document, "language", json_text(result->language));
	json_object_set_new(document, "forgotten", json_integer((json_int_t)result->forgotten));
	json_object_set_new(document, "loaded", json_loaded(&result->loaded));
	json_object_set_new(document, "birth", json_integer((json_int_t)result->birth));
	json_object_set_new(document, "ended", json_ended(&result->ended));
	json_object_set_new(document, "duration_ms", json_real(result->duration_ms));
	json_object_set_new(document, "limit", result->limit > 0 ? json_real(result->limit) : json_null());
	json_add_back(document, &result->back);
	if (result->files_unkept.data)
		json_object_set_new(document, "files_unkept", json_text(result->files_unkept));
	json_add_effects(document, &result->effects);
	json_object_set_new(document, "notes", json_array());
	json_add_notes(document, result);
	return document;
}
