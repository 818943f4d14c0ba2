/* JSON for programs. Structs of plain fields are written by tables; a field whose zero means nothing is null
 * then. */
#include "json.h"

#include "result.h"

#include "proto/wire.h"

#include "text.h"

#include <stdio.h>

static bool text_valid(struct lair_text text)
{
	return utf8_valid((struct bytes){.data = text.data, .size = text.size});
}

static json_t *text_mended(struct lair_text text)
{
	_cleanup_(freep) char *owned = NULL;

	if (text_mend(&text, &owned))
		return json_null();
	return json_stringn_nocheck(text.data, text.size);
}

json_t *json_text(struct lair_text text)
{
	if (!text.data)
		return json_null();
	return text_valid(text) ? json_stringn_nocheck(text.data, text.size) : text_mended(text);
}

json_t *json_base64(struct lair_text text)
{
	_cleanup_(freep) char *out = text_base64(text);

	return out ? json_string_nocheck(out) : json_null();
}

void json_add_output(json_t *object, const char *key, struct lair_text output)
{
	char raw[32];

	json_object_set_new(object, key, json_text(output));
	snprintf(raw, sizeof(raw), "%s_base64", key);
	if (!text_valid(output))
		json_object_set_new(object, raw, json_base64(output));
}

json_t *json_texts(struct lair_items items)
{
	json_t *array = json_array();
	struct lair_text item;
	size_t cursor = 0;

	while (lair_next_text(items, &cursor, &item))
		json_array_append_new(array, json_text(item));
	return array;
}

/* ---- structs ---- */

enum member_type {
	MEMBER_TEXT,
	MEMBER_COUNT,
	MEMBER_COUNT_OR_NULL,
	MEMBER_REAL,
	MEMBER_REAL_OR_NULL,
	MEMBER_FLAG,
	MEMBER_TEXTS
};

struct member {
	const char *name;
	enum member_type type;
	size_t offset;
};

static json_t *member_json(const struct member *member, const void *object)
{
	const void *place = (const char *)object + member->offset;

	switch (member->type) {
	case MEMBER_TEXT:
		return json_text(*(const struct lair_text *)place);
	case MEMBER_COUNT:
		return json_integer((json_int_t) * (const uint64_t *)place);
	case MEMBER_COUNT_OR_NULL:
		return *(const uint64_t *)place ? json_integer((json_int_t) * (const uint64_t *)place)
						: json_null();
	case MEMBER_REAL:
		return json_real(*(const double *)place);
	case MEMBER_REAL_OR_NULL:
		return *(const double *)place > 0 ? json_real(*(const double *)place) : json_null();
	case MEMBER_FLAG:
		return json_boolean(*(const bool *)place);
	case MEMBER_TEXTS:
		return json_texts(*(const struct lair_items *)place);
	}
	return NULL;
}

static json_t *members_json(const struct member *members, size_t n, const void *object)
{
	json_t *document = json_object();

	for (size_t i = 0; i < n; i++)
		json_object_set_new(document, members[i].name, member_json(&members[i], object));
	return document;
}

#define MEMBER(of, kind, member)                                                                                   \
	{                                                                                                          \
		.name = #member, .type = MEMBER_##kind, .offset = offsetof(struct of, member)                      \
	}
#define SESSION(kind, member) MEMBER(lair_session, kind, member)
#define COUNTER(kind, member) MEMBER(lair_counters, kind, member)
#define CHECKPOINT(kind, member) MEMBER(lair_checkpoint, kind, member)

json_t *json_refused(struct lair_items items)
{
	json_t *array = json_array();
	struct lair_refused refused;
	size_t cursor = 0;

	while (lair_next_refused(items, &cursor, &refused))
		json_array_append_new(array, json_pack("{s:o, s:o}", "name", json_text(refused.name), "reason",
						       json_text(refused.reason)));
	return array;
}

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

json_t *json_ended(const struct lair_ended *ended)
{
	if (!ended->why.data)
		return json_null();
	return json_pack("{s:o, s:o, s:I, s:I, s:b, s:o, s:b}", "why", json_text(ended->why), "when",
			 ended->when > 0 ? json_real(ended->when) : json_null(), "birth", (json_int_t)ended->birth,
			 "cells", (json_int_t)ended->cells, "saved", (int)ended->saved, "not_saved",
			 json_text(ended->not_saved), "by_root", (int)ended->by_root);
}

json_t *json_session(const struct lair_session *session)
{
	static const struct member members[] = {
		SESSION(TEXT, session),
		SESSION(TEXT, profile),
		SESSION(TEXT, state),
		SESSION(COUNT, uid),
		SESSION(TEXT, workspace),
		SESSION(REAL, created),
		SESSION(REAL, idle),
		SESSION(COUNT, cells),
		SESSION(COUNT, queued),
		SESSION(COUNT, pid),
		SESSION(COUNT, memory),
		SESSION(REAL_OR_NULL, idle_left),
		SESSION(REAL_OR_NULL, hard_left),
		SESSION(TEXT, level),
		SESSION(TEXT, language),
		SESSION(TEXT, version),
		SESSION(TEXT, python),
		SESSION(TEXTS, guards),
		SESSION(COUNT, checkpoints),
		SESSION(COUNT, checkpoint_memory),
		SESSION(REAL, checkpoint_age),
		SESSION(REAL, cpu),
		SESSION(COUNT, birth),
		SESSION(COUNT, disk),
		SESSION(COUNT, files),
		SESSION(COUNT, tasks),
		SESSION(COUNT_OR_NULL, memory_limit),
		SESSION(COUNT_OR_NULL, tasks_limit),
		SESSION(COUNT_OR_NULL, disk_limit),
		SESSION(REAL_OR_NULL, cpu_limit),
		SESSION(REAL_OR_NULL, cell_timeout),
		SESSION(REAL_OR_NULL, idle_ttl),
		SESSION(REAL_OR_NULL, hard_ttl),
	};

	json_t *document = members_json(members, ARRAY_SIZE(members), session);

	json_add_effects(document, &session->effects);
	if (session->key.data)
		json_object_set_new(document, "key", json_text(session->key));
	return document;
}

json_t *json_checkpoint(const struct lair_checkpoint *checkpoint)
{
	static const struct member members[] = {
		CHECKPOINT(TEXT, name),	      CHECKPOINT(COUNT, cell),	 CHECKPOINT(REAL, age),
		CHECKPOINT(COUNT, memory),    CHECKPOINT(COUNT, files),	 CHECKPOINT(COUNT, files_size),
		CHECKPOINT(FLAG, files_lack), CHECKPOINT(COUNT, parent), CHECKPOINT(FLAG, gap),
		CHECKPOINT(FLAG, base),
	};

	return members_json(members, ARRAY_SIZE(members), checkpoint);
}

static json_t *json_file_difference(const struct lair_file_difference *file)
{
	json_t *document =
		json_pack("{s:o, s:o, s:o, s:I, s:I, s:o}", "path", json_text(file->path), "change",
			  json_text(file->change), "kind", json_text(file->kind), "size", (json_int_t)file->size,
			  "size_before", (json_int_t)file->size_before, "was", json_text(file->was));

	if (file->mode != file->mode_before) {
		json_object_set_new(document, "mode", json_integer((json_int_t)file->mode));
		json_object_set_new(document, "mode_before", json_integer((json_int_t)file->mode_before));
	}
	return document;
}

static json_t *json_variable_difference(const struct lair_variable_difference *variable)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:I}", "name", json_text(variable->name), "change",
			 json_text(variable->change), "type", json_text(variable->type), "text",
			 json_text(variable->text), "size", (json_int_t)variable->size, "type_before",
			 json_text(variable->type_before), "text_before", json_text(variable->text_before),
			 "size_before", (json_int_t)variable->size_before);
}

json_t *json_difference(const char *session, const struct lair_difference *difference)
{
	json_t *files = json_array(), *variables = json_array();
	struct lair_variable_difference variable;
	struct lair_file_difference file;
	size_t cursor = 0;

	while (lair_next_file_difference(difference->files, &cursor, &file))
		json_array_append_new(files, json_file_difference(&file));
	for (cursor = 0; lair_next_variable_difference(difference->variables, &cursor, &variable);)
		json_array_append_new(variables, json_variable_difference(&variable));
	return json_pack("{s:s, s:I, s:I, s:o, s:I, s:o, s:o, s:I, s:o, s:o}", "session", session, "since",
			 (json_int_t)difference->since, "until", (json_int_t)difference->until, "files", files,
			 "files_more", (json_int_t)difference->files_more, "files_lack",
			 json_text(difference->files_lack), "variables", variables, "variables_more",
			 (json_int_t)difference->variables_more, "variables_lack",
			 json_text(difference->variables_lack), "unsure", json_texts(difference->unsure));
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

json_t *json_kept(const struct lair_kept *kept)
{
	bool finished = text_is(kept->state, "finished");

	return json_pack("{s:o, s:o, s:o, s:o, s:f, s:I}", "cell",
			 kept->cell ? json_integer((json_int_t)kept->cell) : json_null(), "key",
			 json_text(kept->key), "state", json_text(kept->state), "returncode",
			 finished ? json_integer(kept->returncode) : json_null(), "age", kept->age, "bytes",
			 (json_int_t)kept->bytes);
}

json_t *json_counters(const struct lair_counters *counters)
{
	static const struct member members[] = {
		COUNTER(REAL, uptime),	       COUNTER(COUNT, pid),	  COUNTER(COUNT, keeper_pid),
		COUNTER(COUNT, sessions),      COUNTER(COUNT, spares),	  COUNTER(COUNT, templates),
		COUNTER(COUNT, opened),	       COUNTER(COUNT, ended),	  COUNTER(COUNT, cells),
		COUNTER(COUNT, requests),      COUNTER(COUNT, refused),	  COUNTER(COUNT, memory),
		COUNTER(TEXTS, profiles),      COUNTER(COUNT, saving),	  COUNTER(COUNT, timed_out),
		COUNTER(COUNT, out_of_memory), COUNTER(COUNT, crashed),	  COUNTER(COUNT, rolled_back),
		COUNTER(COUNT, audit_missed),  COUNTER(TEXTS, loading),	  COUNTER(REAL, ran),
		COUNTER(REAL, waited),	       COUNTER(TEXTS, languages),
	};

	json_t *document = members_json(members, ARRAY_SIZE(members), counters), *array = json_array();
	struct lair_times times;
	size_t cursor = 0;

	while (lair_next_times(counters->times, &cursor, &times))
		json_array_append_new(array, json_pack("{s:o, s:I, s:I}", "most",
						       times.most > 0 ? json_real(times.most) : json_null(), "ran",
						       (json_int_t)times.ran, "waited", (json_int_t)times.waited));
	json_object_set_new(document, "times", array);
	return document;
}

/* Most numbers are whole millionths: a time in milliseconds is. Returns 0 if this one is not. */
static size_t millionths_put(char *out, double value)
{
	char digits[24], *at = digits + sizeof(digits);
	uint64_t millionths;
	unsigned n = 0;

	if (!(value >= 1e-6 && value < 1e8))
		return 0;
	/* To divide gives the number that is nearest to the text, which is what reading the text gives. */
	millionths = (uint64_t)(value * 1e6 + 0.5);
	if ((double)millionths / 1e6 != value)
		return 0;
	for (uint64_t rest = millionths; rest > 0 || n <= 6; rest /= 10, n++) {
		if (n == 6)
			*--at = '.';
		*--at = (char)('0' + rest % 10);
	}
	n = (unsigned)(digits + sizeof(digits) - at);
	while (n > 2 && at[n - 1] == '0' && at[n - 2] != '.')
		n--;
	memcpy(out, at, n);
	return n;
}

/* With 15 digits if they are read as the same number, else with 16. Returns how many bytes of @out that takes. */
static size_t number_put(char *out, const char *number, size_t size)
{
	double value = strtod(number, NULL);
	size_t put = millionths_put(out, value);
	char shorter[32];

	/* It is never longer: that number has 17 digits. */
	if (put > 0)
		return put;
	for (int digits = 15; digits < 17; digits++) {
		size_t n = (size_t)snprintf(shorter, sizeof(shorter), "%.*g", digits, value);

		if (n < size && strpbrk(shorter, ".e") && strtod(shorter, NULL) == value) {
			memcpy(out, shorter, n);
			return n;
		}
	}
	memmove(out, number, size);
	return size;
}

/* The size of a token: a string, a number, or a character between them. */
static size_t token_size(const char *token)
{
	const char *at = token;

	if (*token == '-' || (*token >= '0' && *token <= '9'))
		return strspn(token, "+-.0123456789eE");
	if (*token != '"')
		return 1;
	while (*++at != '"')
		at += *at == '\\';
	return (size_t)(at - token) + 1;
}

static char *compact(const json_t *document, int more)
{
	int flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17) | more;
	char *text = document ? json_dumps(document, flags) : NULL, *out = text;
	size_t size;

	for (const char *at = text; at && *at; at += size) {
		size = token_size(at);
		if (*at != '"' && size > 17 && memchr(at, '.', size)) {
			out += number_put(out, at, size);
		} else {
			if (out != at)
				memmove(out, at, size);
			out += size;
		}
	}
	if (out)
		*out = '\0';
	return text;
}

char *json_compact(const json_t *document)
{
	return compact(document, 0);
}

char *json_ascii(const json_t *document)
{
	return compact(document, JSON_ENSURE_ASCII);
}

char *json_line(json_t *document)
{
	_cleanup_(freep) char *text = json_compact(document);
	size_t size = text ? strlen(text) : 0;
	char *line = text ? realloc(text, size + 2) : NULL;

	json_decref(document);
	if (line) {
		text = NULL;
		strcpy(line + size, "\n");
	}
	return line;
}
