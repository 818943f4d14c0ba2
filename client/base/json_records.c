/* Documents of liblair's structs. A struct has the members of its message, so its document has them, too: the lists
 * in proto/message.h are the only ones. A member that is no plain value, or means nothing when it is zero, is set
 * anew.
 */
#include "json.h"

#include "proto/message.h"
#include "result.h"
#include "text.h"

#define JSON_FLAG(value) json_boolean(value)
#define JSON_UINT(value) json_integer((json_int_t)(value))
#define JSON_INT(value) json_integer(value)
#define JSON_REAL(value) json_real(value)
#define JSON_STR(value) json_text(value)
#define JSON_BIN(value) json_text(value)
#define JSON_RAW(value) json_texts(value)
#define SET(object, kind, field, need) json_object_set_new(document, #field, JSON_##kind((object)->field));

/* A document with all members. */
#define MEMBERS(name, type, FIELDS)                                                                                \
	static json_t *name(const struct type *it)                                                                 \
	{                                                                                                          \
		json_t *document = json_object();                                                                  \
                                                                                                                   \
		FIELDS(SET, it)                                                                                    \
		return document;                                                                                   \
	}
/* The documents of a list. */
#define LIST(name, type, next, document)                                                                           \
	json_t *name(struct lair_items items)                                                                      \
	{                                                                                                          \
		json_t *array = json_array();                                                                      \
		struct type it;                                                                                    \
		size_t cursor = 0;                                                                                 \
                                                                                                                   \
		while (next(items, &cursor, &it))                                                                  \
			json_array_append_new(array, document(&it));                                               \
		return array;                                                                                      \
	}

MEMBERS(refused_members, lair_refused, REFUSED_FIELDS)
MEMBERS(ended_members, lair_ended, ENDED_FIELDS)
MEMBERS(session_members, lair_session, SESSION_FACT_FIELDS)
MEMBERS(checkpoint_members, lair_checkpoint, CHECKPOINT_RECORD_FIELDS)
MEMBERS(file_change_members, lair_file_difference, FILE_DIFFERENCE_FIELDS)
MEMBERS(variable_change_members, lair_variable_difference, VARIABLE_DIFFERENCE_FIELDS)
MEMBERS(difference_members, lair_difference, DIFF_REPLY_FIELDS)
MEMBERS(kept_members, lair_kept, RESULT_RECORD_FIELDS)
MEMBERS(times_members, lair_times, CELL_TIMES_FIELDS)
MEMBERS(counters_members, lair_counters, STATS_REPLY_FIELDS)
MEMBERS(change_members, lair_change, SETTING_CHANGE_FIELDS)
MEMBERS(variable_members, lair_variable, VARIABLE_FIELDS)
MEMBERS(match_members, lair_match, MATCH_FIELDS)
MEMBERS(completions_members, lair_completions, COMPLETE_REPLY_FIELDS)
MEMBERS(inspection_members, lair_inspection, INSPECT_REPLY_FIELDS)
MEMBERS(checked_members, lair_checked, CHECK_REPLY_FIELDS)
MEMBERS(past_members, lair_past, HISTORY_RECORD_FIELDS)
MEMBERS(file_members, lair_file, FILE_RECORD_FIELDS)

/* The members of @names, ended by NULL, are null if they are zero. */
static json_t *with_nulls(json_t *document, const char *const *names)
{
	for (; *names; names++)
		if (json_number_value(json_object_get(document, *names)) <= 0)
			json_object_set_new(document, *names, json_null());
	return document;
}

#define NULLS(document, ...) with_nulls(document, (const char *const[]){__VA_ARGS__, NULL})

/* ---- sessions and their states ---- */

LIST(json_refused, lair_refused, lair_next_refused, refused_members)

json_t *json_saved(const char *session, const struct lair_saved *saved)
{
	return json_pack("{s:s, s:I, s:o, s:o}", "session", session, "size", (json_int_t)saved->size, "names",
			 json_texts(saved->names), "refused", json_refused(saved->refused));
}

json_t *json_save(const struct lair_save *save)
{
	json_t *document = json_pack("{s:o, s:I, s:f, s:o, s:I, s:I}", "session", json_text(save->session), "uid",
				     (json_int_t)save->uid, "created", save->created, "expires",
				     save->expires > 0 ? json_real(save->expires) : json_null(), "size",
				     (json_int_t)save->size, "count", (json_int_t)save->count);

	if (save->before > 0)
		json_object_set_new(document, "before", json_real(save->before));
	if (save->damaged > 0)
		json_object_set_new(document, "damaged", json_integer((json_int_t)save->damaged));
	if (save->names.data) {
		json_object_set_new(document, "names", json_texts(save->names));
		json_object_set_new(document, "refused", json_refused(save->refused));
	}
	return document;
}

json_t *json_loaded(const struct lair_loaded *loaded)
{
	if (loaded->damaged.data)
		return json_pack("{s:o, s:[], s:[]}", "damaged", json_text(loaded->damaged), "names", "refused");
	if (!(loaded->age > 0))
		return json_null();
	return json_pack("{s:f, s:o, s:o}", "age", loaded->age, "names", json_texts(loaded->names), "refused",
			 json_refused(loaded->refused));
}

LIST(json_saves, lair_save, lair_next_save, json_save)

json_t *json_ended(const struct lair_ended *ended)
{
	return ended->why.data ? NULLS(ended_members(ended), "when") : json_null();
}

json_t *json_session(const struct lair_session *session)
{
	json_t *document = NULLS(session_members(session), "idle_left", "hard_left", "memory_limit", "tasks_limit",
				 "disk_limit", "cpu_limit", "cell_timeout", "idle_ttl", "hard_ttl");

	json_object_del(document, "opened"); /* a fact of the request that has opened it */
	json_object_set_new(document, "birth", json_integer((json_int_t)session->birth));
	json_add_effects(document, &session->effects);
	if (session->key.data)
		json_object_set_new(document, "key", json_text(session->key));
	return document;
}

LIST(json_sessions, lair_session, lair_next_session, json_session)
LIST(json_checkpoints, lair_checkpoint, lair_next_checkpoint, checkpoint_members)

static json_t *file_change(const struct lair_file_difference *file)
{
	json_t *document = file_change_members(file);

	if (file->mode == file->mode_before) {
		json_object_del(document, "mode");
		json_object_del(document, "mode_before");
	}
	return document;
}

static LIST(file_changes, lair_file_difference, lair_next_file_difference,
	    file_change) static LIST(variable_changes, lair_variable_difference, lair_next_variable_difference,
				     variable_change_members)

	json_t *json_difference(const char *session, const struct lair_difference *difference)
{
	json_t *document = difference_members(difference);

	json_object_set_new(document, "session", json_string(session));
	json_object_set_new(document, "files", file_changes(difference->files));
	json_object_set_new(document, "variables", variable_changes(difference->variables));
	return document;
}

json_t *json_state(const char *session, const struct lair_state *state)
{
	json_t *document = json_pack("{s:s, s:I, s:o}", "session", session, "cell", (json_int_t)state->cell, "name",
				     json_text(state->name));

	json_add_back(document, &state->back);
	json_add_effects(document, &state->effects);
	json_add_notes(document, &(struct lair_result){.back = state->back, .effects = state->effects});
	return document;
}

json_t *json_waiting(const struct lair_waiting *waiting)
{
	_cleanup_(freep) char *text = waiting->arguments.data ? lair_json(waiting->arguments) : NULL;
	json_t *arguments = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;

	return json_pack("{s:o, s:o, s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:f, s:I}", "session",
			 json_text(waiting->session), "key", json_text(waiting->key), "cell",
			 (json_int_t)waiting->cell, "number", (json_int_t)waiting->number, "function",
			 json_text(waiting->function), "arguments", arguments ? arguments : json_null(), "bytes",
			 (json_int_t)waiting->bytes, "state", json_text(waiting->state), "why",
			 json_text(waiting->text), "age", waiting->age, "uid", (json_int_t)waiting->uid);
}

static json_t *kept_document(const struct lair_kept *kept)
{
	json_t *document = NULLS(kept_members(kept), "cell");

	if (!text_is(kept->state, "finished"))
		json_object_set_new(document, "returncode", json_null());
	return document;
}

LIST(json_kept, lair_kept, lair_next_kept, kept_document)

/* ---- the daemon ---- */

static json_t *times_document(const struct lair_times *times)
{
	return NULLS(times_members(times), "most");
}

static LIST(times_list, lair_times, lair_next_times, times_document)

	json_t *json_counters(const struct lair_counters *counters)
{
	json_t *document = counters_members(counters);

	json_object_set_new(document, "times", times_list(counters->times));
	return document;
}

LIST(json_changes, lair_change, lair_next_change, change_members)

/* ---- answers to questions ---- */

static json_t *variable_document(const struct lair_variable *variable)
{
	json_t *document = variable_members(variable), *shape = variable->shape.data ? json_array() : json_null();
	uint64_t length;
	size_t cursor = 0;

	while (lair_next_number(variable->shape, &cursor, &length))
		json_array_append_new(shape, json_integer((json_int_t)length));
	json_object_set_new(document, "shape", shape);
	return document;
}

static LIST(variables_list, lair_variable, lair_next_variable,
	    variable_document) static LIST(matches_list, lair_match, lair_next_match, match_members)

	json_t *json_variables(const struct lair_variables *found)
{
	return json_pack("{s:o, s:I, s:o}", "variables", variables_list(found->variables), "total",
			 (json_int_t)found->total, "directory", json_text(found->directory));
}

json_t *json_completions(const struct lair_completions *found)
{
	json_t *document = completions_members(found);

	json_object_set_new(document, "matches", matches_list(found->matches));
	return document;
}

json_t *json_inspection(const struct lair_inspection *found)
{
	return NULLS(inspection_members(found), "line");
}

json_t *json_checked(const struct lair_checked *checked)
{
	return NULLS(checked_members(checked), "line", "offset");
}

LIST(json_history, lair_past, lair_next_past, past_members)

static json_t *file_document(const struct lair_file *file)
{
	json_t *document = file_members(file);

	json_add_output(document, "name", file->name);
	return document;
}

LIST(json_files, lair_file, lair_next_file, file_document)
