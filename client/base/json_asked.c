/* Answers to questions about a session, and about code, as JSON. */
#include "json.h"

static json_t *number_or_null(uint64_t number)
{
	return number ? json_integer((json_int_t)number) : json_null();
}

static json_t *variable_json(const struct lair_variable *variable)
{
	json_t *shape = variable->shape.data ? json_array() : json_null();
	uint64_t length;
	size_t cursor = 0;

	while (lair_next_number(variable->shape, &cursor, &length))
		json_array_append_new(shape, json_integer((json_int_t)length));
	return json_pack("{s:o, s:o, s:o, s:I, s:o}", "name", json_text(variable->name), "type",
			 json_text(variable->type), "shape", shape, "size", (json_int_t)variable->size, "text",
			 json_text(variable->text));
}

json_t *json_variables(const struct lair_variables *found)
{
	json_t *array = json_array();
	struct lair_variable variable;
	size_t cursor = 0;

	while (lair_next_variable(found->variables, &cursor, &variable))
		json_array_append_new(array, variable_json(&variable));
	return json_pack("{s:o, s:I, s:o}", "variables", array, "total", (json_int_t)found->total, "directory",
			 json_text(found->directory));
}

json_t *json_completions(const struct lair_completions *found)
{
	json_t *array = json_array();
	struct lair_match match;
	size_t cursor = 0;

	while (lair_next_match(found->matches, &cursor, &match))
		json_array_append_new(array, json_pack("{s:o, s:o}", "text", json_text(match.text), "type",
						       json_text(match.type)));
	return json_pack("{s:o, s:I, s:I}", "matches", array, "start", (json_int_t)found->start, "end",
			 (json_int_t)found->end);
}

json_t *json_inspection(const struct lair_inspection *found)
{
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "found", (int)found->found, "name",
			 json_text(found->name), "type", json_text(found->type), "signature",
			 json_text(found->signature), "docstring", json_text(found->docstring), "text",
			 json_text(found->text), "file", json_text(found->file), "line",
			 found->line ? json_integer((json_int_t)found->line) : json_null(), "source",
			 json_text(found->source));
}

static json_t *past_json(const struct lair_past *past)
{
	return json_pack("{s:I, s:o, s:I, s:i, s:o, s:f, s:b}", "cell", (json_int_t)past->cell, "code",
			 json_text(past->code), "size", (json_int_t)past->size, "returncode", past->returncode,
			 "cause", json_text(past->cause), "duration_ms", past->duration_ms, "undone",
			 (int)past->undone);
}

json_t *json_history(struct lair_items cells)
{
	json_t *array = json_array();
	struct lair_past past;
	size_t cursor = 0;

	while (lair_next_past(cells, &cursor, &past))
		json_array_append_new(array, past_json(&past));
	return array;
}

json_t *json_checked(const struct lair_checked *checked)
{
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o}", "valid", (int)checked->valid, "error",
			 json_text(checked->error), "line", number_or_null(checked->line), "offset",
			 number_or_null(checked->offset), "context", json_text(checked->context), "rule",
			 json_text(checked->rule));
}

json_t *json_file(const struct lair_file *file)
{
	json_t *document = json_object();

	json_add_output(document, "name", file->name);
	json_object_set_new(document, "kind", json_text(file->kind));
	json_object_set_new(document, "size", json_integer((json_int_t)file->size));
	json_object_set_new(document, "stored", json_integer((json_int_t)file->stored));
	json_object_set_new(document, "mode", json_integer((json_int_t)file->mode));
	json_object_set_new(document, "modified", json_real(file->modified));
	return document;
}
