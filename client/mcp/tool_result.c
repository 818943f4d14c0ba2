/* A result must tell a model what happened to its state, in words that it can act on. Empty fields are left out,
 * because every field costs tokens. */
#include "tool_result.h"

#include "base/result.h"
#include "base/text.h"
#include "tools.h"
#include "uri.h"
#include "versions.h"

#include <inttypes.h>

#define SENTENCE_SIZE 240
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

/* Adds a sentence to the note. */
static void note_add(json_t *structured, const char *sentence)
{
	const char *before = json_string_value(json_object_get(structured, "note"));

	json_object_set_new(structured, "note",
			    json_sprintf("%s%s%s", before ? before : "", before ? " " : "", sentence));
}

static void note_tell_of(void *structured, enum note note, const char *sentence)
{
	(void)note;
	note_add(structured, sentence);
}

/* The members of each object that the tool's schema has. */
static json_t *array_of(json_t *objects, const char *const *names)
{
	json_t *array = json_array(), *object, *kept;
	size_t i;

	json_array_foreach(objects, i, object)
	{
		kept = json_object();
		for (const char *const *name = names; *name; name++)
			json_object_set(kept, *name, json_object_get(object, *name));
		json_array_append_new(array, kept);
	}
	return array;
}

/* Takes the list @name out of the document and adds it as @as, with how many more there are as @more. */
static void add_list(json_t *structured, json_t *document, const char *name, const char *as, const char *more,
		     const char *const *members)
{
	json_t *array = array_of(json_object_get(document, name), members);
	char left_out[64];

	snprintf(left_out, sizeof(left_out), "%s_more", name);
	if (json_array_size(array) > 0)
		json_object_set(structured, as, array);
	json_decref(array);
	if (json_integer_value(json_object_get(document, left_out)) > 0)
		json_object_set(structured, more, json_object_get(document, left_out));
}

static void add_went_back(json_t *structured, const struct lair_result *told)
{
	static const char *const of_file[] = {"path", "change", NULL};
	static const char *const of_effect[] = {"act", "target", "to", NULL};
	json_t *document = json_object();

	json_add_back(document, &told->back);
	json_add_effects(document, &told->effects);
	add_list(structured, document, "files", "files_back", "files_left_out", of_file);
	add_list(structured, document, "effects", "effects", "effects_left_out", of_effect);
	json_decref(document);
}

static void add_loaded(json_t *structured, const struct lair_loaded *loaded)
{
	json_t *names = json_array(), *refused = json_array();
	struct lair_refused item;
	struct lair_text name;
	size_t cursor = 0;

	while (lair_next_text(loaded->names, &cursor, &name))
		json_array_append_new(names, excerpt_of(name));
	cursor = 0;
	while (lair_next_refused(loaded->refused, &cursor, &item))
		json_array_append_new(refused, json_pack("{s:o, s:o}", "name", excerpt_of(item.name), "reason",
							 excerpt_of(item.reason)));
	if (json_array_size(names) || json_array_size(refused)) {
		json_object_set(structured, "loaded", names);
		json_object_set(structured, "not_loaded", refused);
	}
	json_decref(names);
	json_decref(refused);
}

void result_add(json_t *structured, const struct lair_result *told)
{
	static const struct note_style style = {
		.models = true,
		.sentences = true,
		.hints = {[CAUSE_TIMEOUT] = "; timeout_sec gives it more"},
		.renew = ": run again what you need of it",
		.skip = {[NOTE_BLOCKED] = true}, /* the list `blocked` tells it */
	};

	if (told->ended.why.data)
		json_object_set_new(structured, "ended", json_text(told->ended.why));
	add_loaded(structured, &told->loaded);
	add_went_back(structured, told);
	result_notes(told, &style, note_tell_of, structured);
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

/* The daemon does not know that this server has used another session of that name. */
static struct lair_ended ended_of(const struct request *request, uint64_t birth, const struct lair_ended *ended)
{
	bool changes = birth_changes(request->engine->births, argument_session(request), birth);

	return changes && !ended->why.data ? ended_unknown : *ended;
}

void result_add_opened(json_t *structured, const struct request *request, const struct lair_session *session)
{
	if (session->opened)
		json_object_set_new(structured, "new", json_true());
	result_add(structured, &(struct lair_result){.ended = ended_of(request, session->birth, &session->ended),
						     .loaded = session->loaded});
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
		if (refusal_show(&act, cell))
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
	bool is_new = cell->ended.why.data && result_fate(cell) == FATE_KEPT;

	if (cell->session.data) {
		json_object_set_new(structured, "session_id", json_text(lair_text(argument_session(request))));
		json_object_set_new(structured, "cell", json_integer((json_int_t)cell->cell));
	}
	json_object_set_new(structured, "state",
			    is_new ? json_string(fates[FATE_NEW].name) : json_text(cell->state));
	if (result_fate(cell) == FATE_ROLLED_BACK)
		json_object_set_new(structured, "restored", json_integer((json_int_t)cell->restored));
	if (cell->cause.data)
		json_object_set_new(structured, "cause", json_text(cell->cause));
	if (cell->returncode != 0)
		json_object_set_new(structured, "returncode", json_integer(cell->returncode));
}

/* Only files that still exist: those of a one-shot are gone. */
static void add_artifacts(json_t *structured, const struct lair_result *cell)
{
	static const char *const members[] = {"path", "size", "type", "change", NULL};
	json_t *document = json_pack("{s:o}", "artifacts", json_artifacts(cell));

	if (cell->session.data)
		add_list(structured, document, "artifacts", "artifacts", "", members);
	json_decref(document);
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

/* How a person can answer: on the command line, under the key of the cell. */
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
	struct lair_result told = *cell;
	json_t *result, *content;

	/* A result that is fetched later may belong to an earlier session of that name. */
	told.ended = cell->session.data ? ended_of(request, tool_runs_in_session(request->tool) ? cell->birth : 0,
						   &cell->ended)
					: (struct lair_ended){.when = 0};
	add_output(structured, seen);
	add_text(structured, "text", cell->text);
	shown_describe(&seen->shown, structured);
	if (cell->error_name.data)
		add_error(structured, cell);
	add_state(structured, request, &told);
	add_blocked(structured, cell);
	add_artifacts(structured, cell);
	result_add(structured, &told);
	add_handle(structured, seen);
	result = result_new(structured);
	content = json_object_get(result, "content");
	shown_append(&seen->shown, content);
	if (versions_links(request))
		append_links(content, cell);
	return result;
}
