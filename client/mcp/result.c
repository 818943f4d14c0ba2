/* A result must tell a model what happened to its state, in words that it can act on. Empty fields are left out,
 * because every field costs tokens. */
#include "result.h"

#include "json.h"
#include "text.h"
#include "tools.h"
#include "uri.h"
#include "versions.h"

#include <inttypes.h>

#define NOTE_SIZE 512
#define SENTENCE_SIZE (CAUSE_SIZE + 40)
/* So many effects are told in a sentence. */
#define EFFECTS_SHOWN 5
#define LINKS_MAX 32
#define BIRTHS_MAX 4096

json_t *result_new(json_t *structured)
{
	char *text = json_compact(structured);
	bool failed = !json_is_true(json_object_get(structured, "ok"));
	json_t *result;

	result = json_pack("{s:[{s:s, s:s}], s:o, s:b}", "content", "type", "text", "text", text ? text : "{}",
			   "structuredContent", structured, "isError", (int)failed);
	free(text);
	return result;
}

json_t *result_done(const struct request *request)
{
	return json_pack("{s:b, s:o}", "ok", 1, "session_id", json_text(lair_text(argument_session(request))));
}

json_t *result_refused(const struct request *request, const char *name, const char *sentence)
{
	json_t *structured = json_pack("{s:b, s:{s:s, s:o}}", "ok", 0, "error", "name", name, "value",
				       json_text(lair_text(sentence)));

	if (request->news)
		json_object_update(structured, request->news);
	return result_new(structured);
}

json_t *result_failure(const struct request *request, int error, const char *sentence)
{
	return result_refused(request, lair_code(error), sentence);
}

/* ---- cells ---- */

static const char *cause_sentence(char out[static SENTENCE_SIZE], const struct lair_result *cell)
{
	char words[CAUSE_SIZE];

	human_cause(words, cell);
	if (!words[0])
		return "";
	words[0] = (char)(words[0] - 'a' + 'A');
	snprintf(out, SENTENCE_SIZE, "%s%s.", words,
		 text_is(cell->cause, "timeout") ? "; timeout_sec gives it more" : "");
	return out;
}

static void state_sentence(char out[static NOTE_SIZE], const struct lair_result *cell)
{
	char state[HUMAN_SIZE];

	*out = '\0';
	if (text_is(cell->cause, "forbidden") && result_goes_on(cell))
		snprintf(out, NOTE_SIZE, "The session is as it was.");
	else if (result_goes_on(cell))
		snprintf(out, NOTE_SIZE, "The session goes on; what the code had done until then stays.");
	else if (text_is(cell->state, "rolled_back"))
		snprintf(out, NOTE_SIZE, "The variables of the session are those of %s%s.",
			 human_state(state, cell->restored), cell->back.stay.data ? "" : ", and so are its files");
	else if (text_is(cell->state, "reset"))
		snprintf(out, NOTE_SIZE, "All variables and imports of the session are lost; its files stay.");
	else if (cell->session.data)
		snprintf(out, NOTE_SIZE,
			 "There is no session any more, nor its files; to use its session_id makes a new one.");
}

/* Adds a sentence to the note. */
static void note_add(json_t *structured, const char *sentence)
{
	const char *before = json_string_value(json_object_get(structured, "note"));

	json_object_set_new(structured, "note",
			    json_sprintf("%s%s%s", before ? before : "", before ? " " : "", sentence));
}

/* What a model has to know, if all is not as it would think. */
static void add_note(json_t *structured, const struct lair_result *cell)
{
	char state[NOTE_SIZE], cause[SENTENCE_SIZE], note[2 * NOTE_SIZE];
	bool changed = cell->session.data && !result_goes_on(cell);
	const char *why = cause_sentence(cause, cell);

	state_sentence(state, cell);
	if (cell->returncode != 0 && !cell->session.data && text_is(cell->cause, "error"))
		return;
	if (cell->returncode != 0)
		snprintf(note, sizeof(note), "%s%s%s", why, *why && *state ? " " : "", state);
	else if (changed)
		snprintf(note, sizeof(note), "%s%s", state,
			 text_is(cell->state, "ended") || text_is(cell->cause, "exit")
				 ? ""
				 : " That was before this code, which ran on what came back.");
	else
		return;
	note_add(structured, note);
}

/* How far a crash would go back, if that is further than before this code. */
static void add_distance(json_t *structured, const struct lair_result *cell)
{
	char note[2 * NOTE_SIZE];

	if (!cell->session.data || !cell->unfaithful.data)
		return;
	snprintf(note, sizeof(note), "The variables as they are now are not kept: %.*s.",
		 (int)MIN(cell->unfaithful.size, sizeof(note) / 2), cell->unfaithful.data);
	note_add(structured, note);
}

/* The first few effects, as in "connected to 10.0.0.5:443, wrote /data/a.csv and 2 more". */
static void effects_sentence(char *out, size_t size, const struct lair_effects *effects)
{
	uint64_t more = effects->more, n = 0;
	char text[EFFECT_SIZE];
	struct lair_effect effect;
	size_t cursor = 0, used;

	used = (size_t)snprintf(out, size, "Going back does not undo what was done outside:");
	while (lair_next_effect(effects->items, &cursor, &effect)) {
		if (n == EFFECTS_SHOWN) {
			more++;
			continue;
		}
		used += (size_t)snprintf(out + used, size - used, "%s %s", n ? "," : "",
					 human_effect(text, &effect));
		n++;
	}
	if (more > 0)
		used += (size_t)snprintf(out + used, size - used, "%s %" PRIu64 " more", n ? " and" : "", more);
	snprintf(out + used, size - used, ".");
}

/* As in "Files brought back: restored a.csv, removed b.csv and 2 more." */
static void back_sentence(char *out, size_t size, const struct lair_back *back)
{
	uint64_t more = back->more, n = 0;
	char path[EFFECT_SIZE / 2], change[16];
	struct lair_file_back file;
	size_t cursor = 0, used;

	used = (size_t)snprintf(out, size, "Files brought back:");
	while (lair_next_file_back(back->items, &cursor, &file)) {
		if (n == EFFECTS_SHOWN) {
			more++;
			continue;
		}
		used += (size_t)snprintf(out + used, size - used, "%s %s %s", n ? "," : "",
					 text_tamed(change, sizeof(change), file.change),
					 text_tamed(path, sizeof(path), file.path));
		n++;
	}
	if (more > 0)
		used += (size_t)snprintf(out + used, size - used, "%s %" PRIu64 " more", n ? " and" : "", more);
	snprintf(out + used, size - used, ".");
}

static json_t *back_array(const struct lair_back *back)
{
	json_t *array = json_array();
	struct lair_file_back file;
	size_t cursor = 0;

	while (lair_next_file_back(back->items, &cursor, &file))
		json_array_append_new(array, json_pack("{s:o, s:o}", "path", json_text(file.path), "change",
						       json_text(file.change)));
	return array;
}

void result_add_back(json_t *structured, const struct lair_back *back)
{
	char sentence[(EFFECTS_SHOWN + 1) * EFFECT_SIZE], why[NOTE_SIZE];
	json_t *array = back_array(back);
	bool any = json_array_size(array) > 0;

	if (any)
		json_object_set(structured, "files_back", array);
	json_decref(array);
	if (back->more > 0)
		json_object_set_new(structured, "files_left_out", json_integer((json_int_t)back->more));
	if (any || back->more > 0) {
		back_sentence(sentence, sizeof(sentence), back);
		note_add(structured, sentence);
	}
	if (back->stay.size > 0) {
		snprintf(sentence, sizeof(sentence), "Files stay as they are: %s.",
			 text_tamed(why, sizeof(why), back->stay));
		note_add(structured, sentence);
	}
}

void result_add_effects(json_t *structured, const struct lair_effects *effects)
{
	char sentence[(EFFECTS_SHOWN + 1) * EFFECT_SIZE];
	struct lair_effect effect;
	json_t *array, *object;
	size_t cursor = 0;

	if (effects->items.size == 0 && effects->more == 0)
		return;
	array = json_array();
	while (lair_next_effect(effects->items, &cursor, &effect)) {
		object = json_pack("{s:o, s:o}", "act", json_text(effect.act), "target", json_text(effect.target));
		if (effect.to.data)
			json_object_set_new(object, "to", json_text(effect.to));
		json_array_append_new(array, object);
	}
	if (json_array_size(array) > 0)
		json_object_set(structured, "effects", array);
	json_decref(array);
	if (effects->more > 0)
		json_object_set_new(structured, "effects_left_out", json_integer((json_int_t)effects->more));
	effects_sentence(sentence, sizeof(sentence), effects);
	note_add(structured, sentence);
}

static void add_text(json_t *structured, const char *name, struct lair_text text)
{
	if (text.size > 0)
		json_object_set_new(structured, name, excerpt_of(text));
}

/* When a session has ended, its name stands for another session. Returns whether that has happened. */
static bool birth_changes(json_t *births, const char *id, uint64_t birth)
{
	json_int_t before = json_integer_value(json_object_get(births, id));

	if (!birth)
		return false;
	if (json_object_size(births) >= BIRTHS_MAX)
		json_object_clear(births);
	json_object_set_new(births, id, json_integer((json_int_t)birth));
	return before && before != (json_int_t)birth;
}

bool result_add_ended(json_t *structured, const struct request *request, uint64_t birth,
		      const struct lair_ended *ended, const struct lair_loaded *loaded)
{
	static const struct lair_ended unknown = {.why = {"unknown", sizeof("unknown") - 1}};
	bool changes = birth_changes(request->server->births, argument_session(request), birth);
	const struct lair_ended *told = ended->why.data ? ended : &unknown;
	char words[ENDED_SIZE], note[NOTE_SIZE];

	if (!ended->why.data && !changes)
		return false;
	json_object_set_new(structured, "ended", json_text(told->why));
	snprintf(note, sizeof(note),
		 "This session is new: the one before has ended (%s). %s are gone: run again what you need of it.",
		 human_ended(words, told),
		 loaded->age > 0 ? "What is not in `loaded`, and its files," : "Its variables, imports and files");
	note_add(structured, note);
	return true;
}

void result_add_opened(json_t *structured, const struct request *request, const struct lair_session *session)
{
	if (session->opened)
		json_object_set_new(structured, "new", json_true());
	(void)result_add_ended(structured, request, session->birth, &session->ended, &session->loaded);
	result_add_loaded(structured, &session->loaded);
}

void result_add_loaded(json_t *structured, const struct lair_loaded *loaded)
{
	char note[300];
	json_t *names = json_array(), *refused = json_array();
	struct lair_refused item;
	struct lair_text name;
	size_t cursor = 0;

	if (loaded->damaged.data) {
		snprintf(note, sizeof(note), "The variables of the session do not come back: %.*s.",
			 (int)MIN(loaded->damaged.size, (size_t)200), loaded->damaged.data);
		note_add(structured, note);
	}
	while (lair_next_text(loaded->names, &cursor, &name))
		json_array_append_new(names, excerpt_of(name));
	cursor = 0;
	while (lair_next_refused(loaded->refused, &cursor, &item))
		json_array_append_new(refused, json_pack("{s:o, s:o}", "name", excerpt_of(item.name), "reason",
							 excerpt_of(item.reason)));
	if (json_array_size(names) || json_array_size(refused)) {
		json_object_set(structured, "loaded", names);
		json_object_set(structured, "not_loaded", refused);
		if (!json_object_get(structured, "ended"))
			note_add(structured,
				 "The session had ended before this call and was made anew: the variables in "
				 "`loaded` came back, all else and its files did not.");
	}
	json_decref(names);
	json_decref(refused);
}

static void add_error(json_t *structured, const struct lair_result *cell)
{
	json_t *error = json_object();

	add_text(error, "name", cell->error_name);
	add_text(error, "value", cell->error_value);
	add_text(error, "suggestion", cell->error_suggestion);
	/* stderr tells where the error arose. */
	json_object_set_new(structured, "error", error);
}

static void add_blocked(json_t *structured, const struct lair_result *cell)
{
	json_t *array = json_array(), *object;
	struct lair_blocked act;
	size_t cursor = 0;

	while (lair_next_blocked(cell->blocked, &cursor, &act)) {
		/* The error that ended the code has told it already. */
		if (refusal_told(&act, cell->error_value))
			continue;
		object = json_object();
		add_text(object, "event", act.event);
		add_text(object, "target", act.target);
		add_text(object, "reason", act.reason);
		json_array_append_new(array, object);
	}
	if (json_array_size(array) > 0)
		json_object_set(structured, "blocked", array);
	json_decref(array);
}

static void add_state(json_t *structured, const struct request *request, const struct lair_result *cell)
{
	/* A result that is fetched later may belong to an earlier session of that name. */
	uint64_t birth = tool_runs_in_session(request->tool) ? cell->birth : 0;
	bool is_new =
		cell->session.data && result_add_ended(structured, request, birth, &cell->ended, &cell->loaded);

	if (cell->session.data) {
		json_object_set_new(structured, "session_id", json_text(lair_text(argument_session(request))));
		json_object_set_new(structured, "cell", json_integer((json_int_t)cell->cell));
	}
	json_object_set_new(structured, "state",
			    is_new && text_is(cell->state, "kept") ? json_string("new") : json_text(cell->state));
	if (text_is(cell->state, "rolled_back"))
		json_object_set_new(structured, "restored", json_integer((json_int_t)cell->restored));
	if (cell->cause.data)
		json_object_set_new(structured, "cause", json_text(cell->cause));
	if (cell->returncode != 0)
		json_object_set_new(structured, "returncode", json_integer(cell->returncode));
}

/* Only files that still exist: those of a one-shot are gone. */
static void add_artifacts(json_t *structured, const struct lair_result *cell)
{
	json_t *array = json_array();
	struct lair_artifact file;
	size_t cursor = 0;

	while (cell->session.data && lair_next_artifact(cell->artifacts, &cursor, &file))
		json_array_append_new(array, json_pack("{s:o, s:I, s:o, s:o}", "path", json_text(file.path), "size",
						       (json_int_t)file.size, "type", json_text(file.type),
						       "change", json_text(file.change)));
	if (json_array_size(array) > 0)
		json_object_set(structured, "artifacts", array);
	json_decref(array);
}

static void append_links(json_t *content, const struct lair_result *cell)
{
	struct lair_artifact file;
	size_t cursor = 0;

	for (unsigned n = 0;
	     n < LINKS_MAX && cell->session.data && lair_next_artifact(cell->artifacts, &cursor, &file); n++)
		json_array_append_new(content,
				      json_pack("{s:s, s:o, s:o, s:o, s:I}", "type", "resource_link", "uri",
						uri_of(cell->session, file.path), "name", json_text(file.path),
						"mimeType", json_text(file.type), "size", (json_int_t)file.size));
}

static void add_output(json_t *structured, const struct seen *seen)
{
	if (seen->out.size > 0)
		json_object_set_new(structured, "stdout", excerpt_json(&seen->out));
	if (seen->err.size > 0)
		json_object_set_new(structured, "stderr", excerpt_json(&seen->err));
}

/* Tells that the stream begins with output that this code has not written. */
static void tell_stray(json_t *structured, const char *stream, uint64_t size)
{
	char sentence[SENTENCE_SIZE];

	if (!size)
		return;
	snprintf(sentence, sizeof(sentence),
		 "The first %" PRIu64
		 " bytes of %s are of earlier code: a thread or task wrote them before this code "
		 "began.",
		 size, stream);
	note_add(structured, sentence);
}

/* If the output is long, tells how to get it in pieces. */
static void tell_pieces(json_t *structured, const struct seen *seen, const struct excerpt *excerpt,
			const char *stream, uint64_t printed, const char *also)
{
	char sentence[SENTENCE_SIZE];

	if (!seen->handle || !excerpt_cut(excerpt))
		return;
	json_object_set(structured, "handle", seen->handle);
	snprintf(sentence, sizeof(sentence),
		 "%s was %" PRIu64 " bytes; python_result with from_byte%s gives any of them.", stream, printed,
		 also);
	note_add(structured, sentence);
}

static void add_handle(json_t *structured, const struct seen *seen)
{
	tell_pieces(structured, seen, &seen->out, "stdout", seen->printed.out, "");
	tell_pieces(structured, seen, &seen->err, "stderr", seen->printed.err, " and of_stderr");
}

/* How somebody can answer: on the command line, under the key of the cell. */
static void tell_asking(json_t *structured, json_t *asking, const char *key)
{
	json_t *sentence;
	json_int_t first = json_integer_value(json_object_get(json_array_get(asking, 0), "number"));

	if (!asking)
		return;
	json_object_set(structured, "asking", asking);
	sentence = json_sprintf("%s%s wait%s for approval by a person, who can give it with `lair answer --key %s "
				"%" JSON_INTEGER_FORMAT
				" --approve`, or refuse with --refuse WHY; `lair calls` lists them.",
				json_array_size(asking) > 1 ? "Calls, listed in `asking`, " : "A call of ",
				json_array_size(asking) > 1
					? ""
					: json_string_value(json_object_get(json_array_get(asking, 0), "function")),
				json_array_size(asking) > 1 ? "" : "s", key, first);
	note_add(structured, json_string_value(sentence));
	json_decref(sentence);
}

json_t *result_running(const struct request *request, const struct seen *seen, json_t *handle, json_t *asking,
		       const char *key, double seconds)
{
	json_t *structured = json_pack("{s:b, s:b, s:o}", "ok", 1, "running", 1, "handle", handle), *result;
	const char *session = seen->once ? NULL : strchr(json_string_value(handle), '@');

	add_output(structured, seen);
	shown_describe(&seen->shown, structured);
	if (session)
		json_object_set_new(structured, "session_id", json_text(lair_text(argument_session(request))));
	json_object_set_new(
		structured, "note",
		json_sprintf("The code still runs after %.0f s. python_result with this handle waits for the "
			     "rest.%s",
			     seconds, session ? " python_session_reset ends it." : ""));
	tell_asking(structured, asking, key);
	result = result_new(structured);
	shown_append(&seen->shown, json_object_get(result, "content"));
	return result;
}

json_t *result_cell(const struct request *request, const struct lair_result *cell, const struct seen *seen)
{
	json_t *structured = json_pack("{s:b}", "ok", cell->returncode == 0);
	json_t *result, *content;

	add_output(structured, seen);
	add_text(structured, "text", cell->text);
	shown_describe(&seen->shown, structured);
	if (cell->error_name.data)
		add_error(structured, cell);
	add_state(structured, request, cell);
	add_blocked(structured, cell);
	add_artifacts(structured, cell);
	result_add_loaded(structured, &cell->loaded);
	add_note(structured, cell);
	add_distance(structured, cell);
	tell_stray(structured, "stdout", cell->out_stray);
	tell_stray(structured, "stderr", cell->err_stray);
	add_handle(structured, seen);
	result_add_back(structured, &cell->back);
	result_add_effects(structured, &cell->effects);
	result = result_new(structured);
	content = json_object_get(result, "content");
	shown_append(&seen->shown, content);
	if (versions_links(request))
		append_links(content, cell);
	return result;
}
