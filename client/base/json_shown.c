/* Displays, output and errors of a cell, as JSON. */
#include "json.h"

#include "text.h"

static bool is_json(struct lair_text type)
{
	static const char suffix[] = "json";
	size_t n = sizeof(suffix) - 1;

	return type.size > n && memcmp(type.data + type.size - n, suffix, n) == 0 &&
	       strchr("/+.", type.data[type.size - n - 1]);
}

/* Valid JSON becomes part of the document. Data that only claims to be JSON is text. */
static json_t *data_json(const struct lair_data *item)
{
	json_t *parsed =
		is_json(item->type) ? json_loadb(item->data.data, item->data.size, JSON_DECODE_ANY, NULL) : NULL;

	if (parsed)
		return parsed;
	return item->binary ? json_base64(item->data) : json_text(item->data);
}

json_t *json_data(struct lair_items bundle)
{
	json_t *document = bundle.data ? json_object() : json_null();
	struct lair_data item;
	size_t cursor = 0;

	while (lair_next_data(bundle, &cursor, &item))
		json_object_setn_new(document, item.type.data, item.type.size, data_json(&item));
	return document;
}

static json_t *metadata_json(struct lair_text metadata)
{
	json_t *parsed = metadata.data ? json_loadb(metadata.data, metadata.size, 0, NULL) : NULL;

	return parsed ? parsed : json_null();
}

json_t *json_display(const struct lair_display *display)
{
	return json_pack("{s:o, s:o, s:o, s:b}", "data", json_data(display->data), "metadata",
			 metadata_json(display->metadata), "display_id", json_text(display->id), "update",
			 display->update);
}

json_t *json_displays(const struct lair_result *result)
{
	json_t *array = json_array();
	struct lair_display display;
	size_t cursor = 0;

	while (lair_next_display(result->displays, &cursor, &display))
		json_array_append_new(array, json_display(&display));
	return array;
}

json_t *json_artifacts(const struct lair_result *result)
{
	json_t *array = json_array();
	struct lair_artifact artifact;
	size_t cursor = 0;

	while (lair_next_artifact(result->artifacts, &cursor, &artifact)) {
		json_t *record = json_object();

		json_add_output(record, "path", artifact.path);
		json_object_set_new(record, "size", json_integer((json_int_t)artifact.size));
		json_object_set_new(record, "type", json_text(artifact.type));
		json_object_set_new(record, "change", json_text(artifact.change));
		json_array_append_new(array, record);
	}
	return array;
}

void json_add_back(json_t *object, const struct lair_back *back)
{
	struct lair_file_back file;
	size_t cursor = 0;
	json_t *array;

	if (back->stay.data)
		json_object_set_new(object, "files_stay", json_text(back->stay));
	if (back->items.size == 0 && back->more == 0)
		return;
	array = json_array();
	while (lair_next_file_back(back->items, &cursor, &file)) {
		json_t *record = json_object();

		json_add_output(record, "path", file.path);
		json_object_set_new(record, "change", json_text(file.change));
		json_array_append_new(array, record);
	}
	json_object_set_new(object, "files", array);
	json_object_set_new(object, "files_more", json_integer((json_int_t)back->more));
}

void json_add_effects(json_t *object, const struct lair_effects *effects)
{
	struct lair_effect effect;
	size_t cursor = 0;
	json_t *array;

	if (effects->items.size == 0 && effects->more == 0)
		return;
	array = json_array();
	while (lair_next_effect(effects->items, &cursor, &effect)) {
		json_t *record = json_object();

		json_object_set_new(record, "act", json_text(effect.act));
		json_add_output(record, "target", effect.target);
		if (effect.to.data)
			json_add_output(record, "to", effect.to);
		json_object_set_new(record, "cell", json_integer((json_int_t)effect.cell));
		json_array_append_new(array, record);
	}
	json_object_set_new(object, "effects", array);
	json_object_set_new(object, "effects_more", json_integer((json_int_t)effects->more));
}

static json_t *number_or_null(uint64_t number)
{
	return number ? json_integer((json_int_t)number) : json_null();
}

static json_t *frame_json(const struct lair_error_frame *frame)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "cell", number_or_null(frame->cell), "file",
			 json_text(frame->file), "line", number_or_null(frame->line), "column",
			 json_integer((json_int_t)frame->column), "function", json_text(frame->function), "source",
			 json_text(frame->source), "values", json_data(frame->values));
}

json_t *json_error(const struct lair_result *result)
{
	json_t *frames;
	struct lair_error_frame frame;
	size_t cursor = 0;

	if (!result->error_name.data)
		return json_null();
	frames = json_array();
	while (lair_next_error_frame(result->error_frames, &cursor, &frame))
		json_array_append_new(frames, frame_json(&frame));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", json_text(result->error_name), "value",
			 json_text(result->error_value), "traceback", json_text(result->error_traceback),
			 "suggestion", json_text(result->error_suggestion), "line",
			 number_or_null(result->error_line), "offset", number_or_null(result->error_offset),
			 "context", json_text(result->error_context), "frames", frames);
}
