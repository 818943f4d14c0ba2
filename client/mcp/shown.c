/* A display has several types, of which the best is taken: a picture in a format that models take, or else plain
 * text. An update replaces the display before it. */
#include "shown.h"

#include "base/json.h"
#include "base/text.h"
#include "excerpt.h"

#define ITEMS_MAX 32

int shown_init(struct shown *shown)
{
	*shown = (struct shown){.items = json_array()};
	return shown->items ? 0 : -ENOMEM;
}

void shown_deinit(struct shown *shown)
{
	json_decref(shown->items);
	shown->items = NULL;
}

static bool is_picture(const struct lair_data *data)
{
	static const char *const types[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};

	for (size_t i = 0; data->binary && i < ARRAY_SIZE(types); i++)
		if (text_is(data->type, types[i]))
			return true;
	return false;
}

/* The best form in @bundle; NULL if it has nothing to show. New. */
static json_t *item_of(struct lair_items bundle, bool text_too)
{
	struct lair_text text = {.data = NULL};
	struct lair_data data;
	size_t cursor = 0;

	while (lair_next_data(bundle, &cursor, &data)) {
		if (is_picture(&data))
			return json_pack("{s:{s:s, s:o, s:o}}", "image", "type", "image", "data",
					 json_base64(data.data), "mimeType", json_text(data.type));
		if (text_is(data.type, "text/plain"))
			text = data.data;
	}
	return text_too && text.data ? json_pack("{s:o}", "text", excerpt_of(text)) : NULL;
}

static void item_add(struct shown *shown, json_t *item)
{
	if (!item)
		return;
	if (json_array_size(shown->items) < ITEMS_MAX) {
		json_array_append_new(shown->items, item);
		return;
	}
	json_decref(item);
	shown->dropped++;
}

void shown_add(struct shown *shown, const struct lair_display *display)
{
	json_t *item = item_of(display->data, true), *id = json_text(display->id), *other;
	bool replaced = false;
	size_t i;

	if (display->clear)
		json_array_clear(shown->items);
	if (display->id.data && item)
		json_object_set(item, "id", id);
	json_array_foreach(shown->items, i, other)
	{
		if (display->update && item && json_equal(json_object_get(other, "id"), id)) {
			json_array_set(shown->items, i, item);
			replaced = true;
		}
	}
	json_decref(id);
	if (replaced)
		json_decref(item);
	else
		item_add(shown, item);
}

void shown_add_value(struct shown *shown, struct lair_items data)
{
	item_add(shown, item_of(data, false));
}

void shown_describe(const struct shown *shown, json_t *structured)
{
	json_t *texts = json_array(), *item, *text;
	json_int_t pictures = 0;
	size_t i;

	json_array_foreach(shown->items, i, item)
	{
		text = json_object_get(item, "text");
		if (text)
			json_array_append(texts, text);
		else
			pictures++;
	}
	if (json_array_size(texts) > 0)
		json_object_set(structured, "displays", texts);
	if (pictures)
		json_object_set_new(structured, "images", json_integer(pictures));
	if (shown->dropped)
		json_object_set_new(structured, "displays_left_out", json_integer((json_int_t)shown->dropped));
	json_decref(texts);
}

void shown_append(const struct shown *shown, json_t *content)
{
	json_t *item;
	size_t i;

	json_array_foreach(shown->items, i, item) if (json_object_get(item, "image"))
		json_array_append(content, json_object_get(item, "image"));
}
