/* Questions about code and names: complete, inspect, is_complete, history. */
#include "bridge.h"

#include "base/json.h"
#include "base/paint.h"
#include "base/text.h"

#include <fnmatch.h>
#include <stdio.h>

static struct lair_text code_of(const struct job *job)
{
	const json_t *code = json_object_get(job->message.content, "code");

	return (struct lair_text){.data = json_is_string(code) ? json_string_value(code) : "",
				  .size = json_string_length(code)};
}

/* In characters, as laird counts; 0 for laird is the end. */
static uint64_t cursor_of(const struct job *job)
{
	const json_t *cursor = json_object_get(job->message.content, "cursor_pos");

	return json_is_integer(cursor) && json_integer_value(cursor) > 0 ? (uint64_t)json_integer_value(cursor) : 0;
}

/* ---- complete ---- */

static json_t *completed(json_t *matches, json_t *types, uint64_t start, uint64_t end)
{
	return json_pack("{s:s, s:o, s:I, s:I, s:{s:o}}", "status", "ok", "matches", matches, "cursor_start",
			 (json_int_t)start, "cursor_end", (json_int_t)end, "metadata",
			 "_jupyter_types_experimental", types);
}

static void complete_done(struct job *job)
{
	const struct lair_completions *found = lair_outcome(job->call) ? NULL : lair_completions(job->call);
	json_t *matches = json_array(), *types = json_array();
	struct lair_match match;
	size_t cursor = 0;

	while (found && lair_next_match(found->matches, &cursor, &match)) {
		json_array_append_new(matches, json_text(match.text));
		json_array_append_new(types,
				      json_pack("{s:o, s:o, s:I, s:I}", "text", json_text(match.text), "type",
						json_text(match.type.data ? match.type : lair_text("")), "start",
						(json_int_t)found->start, "end", (json_int_t)found->end));
	}
	job_reply(job, completed(matches, types, found ? found->start : cursor_of(job),
				 found ? found->end : cursor_of(job)));
}

void complete_begin(struct job *job)
{
	struct lair *lair = job_lair(job);

	if (!lair)
		return;
	/* Before the first character there is nothing to complete. */
	if (cursor_of(job) == 0 && json_object_get(job->message.content, "cursor_pos")) {
		job_reply(job, completed(json_array(), json_array(), 0, 0));
		return;
	}
	job_wait(job, lair_complete(lair, &job->call, job->bridge->session, code_of(job), cursor_of(job)),
		 complete_done);
}

/* ---- inspect ---- */

static void section(FILE *out, const char *name, struct lair_text text)
{
	bool lines = text.data && memchr(text.data, '\n', text.size);

	if (text.size > 0)
		fprintf(out, "\033[0;31m%s:\033[0m%s%.*s\n", name, lines ? "\n" : " ", (int)text.size, text.data);
}

static char *inspection_text(const struct lair_inspection *found)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	section(out, "Signature", found->signature);
	section(out, "Type", found->type);
	section(out, "String form", found->text);
	section(out, "File", found->file);
	section(out, found->source.size ? "Source" : "Docstring",
		found->source.size ? found->source : found->docstring);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void inspect_done(struct job *job)
{
	const struct lair_inspection *found = lair_outcome(job->call) ? NULL : lair_inspection(job->call);
	_cleanup_(freep) char *text = found && found->found ? inspection_text(found) : NULL;
	json_t *data = json_object();

	if (text)
		json_object_set_new(data, "text/plain", json_text(lair_text(text)));
	job_reply(job, json_pack("{s:s, s:b, s:o, s:{}}", "status", "ok", "found", text != NULL, "data", data,
				 "metadata"));
}

void inspect_begin(struct job *job)
{
	struct lair *lair = job_lair(job);
	struct lair_inspect inspect = {
		.session = job->bridge->session,
		.code = code_of(job),
		.cursor = cursor_of(job),
		.source = json_integer_value(json_object_get(job->message.content, "detail_level")) > 0,
	};

	if (lair)
		job_wait(job, lair_inspect(lair, &job->call, &inspect), inspect_done);
}

/* ---- is_complete ---- */

static void is_complete_done(struct job *job)
{
	const struct lair_completeness *told = lair_outcome(job->call) ? NULL : lair_completeness(job->call);
	json_t *reply = json_pack("{s:o}", "status", json_text(told ? told->status : lair_text("unknown")));

	if (told && text_is(told->status, "incomplete"))
		json_object_set_new(reply, "indent", json_text(told->indent.data ? told->indent : lair_text("")));
	job_reply(job, reply);
}

void is_complete_begin(struct job *job)
{
	struct lair *lair = job_lair(job);
	struct lair_code code = {.session = job->bridge->session, .code = code_of(job)};

	if (lair)
		job_wait(job, lair_is_complete(lair, &job->call, &code), is_complete_done);
}

/* ---- history ---- */

struct wanted {
	const char *kind, *pattern;
	json_int_t n, start, stop;
	bool unique;
};

static json_int_t number_of(const json_t *content, const char *key, json_int_t otherwise)
{
	const json_t *number = json_object_get(content, key);

	return json_is_integer(number) ? json_integer_value(number) : otherwise;
}

static bool is_wanted(const struct wanted *wanted, const struct lair_past *past, const char *code)
{
	if (strcmp(wanted->kind, "range") == 0)
		return (json_int_t)past->cell >= wanted->start && (json_int_t)past->cell < wanted->stop;
	return strcmp(wanted->kind, "search") != 0 || fnmatch(wanted->pattern, code, 0) == 0;
}

/* An earlier one of the same code goes. */
static void unique_keep(json_t *cells, const char *code)
{
	for (size_t i = json_array_size(cells); i-- > 0;)
		if (strcmp(json_string_value(json_array_get(json_array_get(cells, i), 2)), code) == 0)
			json_array_remove(cells, i);
}

static bool is_message(const char *code)
{
	return strncmp(code, "{\"msg_type\":", strlen("{\"msg_type\":")) == 0;
}

static void past_add(json_t *cells, const struct wanted *wanted, const struct lair_past *past)
{
	json_t *text = json_text(past->code);
	const char *code = json_string_value(text);

	if (code && !is_message(code) && is_wanted(wanted, past, code)) {
		if (wanted->unique)
			unique_keep(cells, code);
		json_array_append_new(cells, json_pack("[i, I, O]", 0, (json_int_t)past->cell, text));
	}
	json_decref(text);
}

static void history_done(struct job *job)
{
	const json_t *content = job->message.content;
	const char *kind = message_text(content, "hist_access_type"), *pattern = message_text(content, "pattern");
	struct wanted wanted = {
		.kind = *kind ? kind : "tail",
		.pattern = *pattern ? pattern : "*",
		.n = number_of(content, "n", 0),
		.start = MAX(number_of(content, "start", 1), (json_int_t)1),
		.stop = number_of(content, "stop", INT64_MAX),
		.unique = message_flag(content, "unique", false),
	};
	json_t *cells = json_array();
	struct lair_past past;
	size_t cursor = 0;

	/* Sessions of before have left no history. 0 is this one. */
	if (!lair_outcome(job->call) && number_of(content, "session", 0) == 0)
		while (lair_next_past(lair_past_cells(job->call), &cursor, &past))
			past_add(cells, &wanted, &past);
	while (wanted.n > 0 && strcmp(wanted.kind, "range") != 0 && (json_int_t)json_array_size(cells) > wanted.n)
		json_array_remove(cells, 0);
	if (message_flag(content, "output", false))
		for (size_t i = 0; i < json_array_size(cells); i++) {
			json_t *cell = json_array_get(cells, i);

			json_array_set_new(cell, 2, json_pack("[O, n]", json_array_get(cell, 2)));
		}
	job_reply(job, json_pack("{s:s, s:o}", "status", "ok", "history", cells));
}

void history_begin(struct job *job)
{
	struct lair *lair = job_lair(job);

	if (lair)
		job_wait(job, lair_history(lair, &job->call, job->bridge->session, 0), history_done);
}
