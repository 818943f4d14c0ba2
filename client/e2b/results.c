/* Displays and values, as E2B has them: by short names instead of MIME types. */
#include "e2b.h"

#include "base/json.h"
#include "base/text.h"

/* Other forms of such types are for notebooks. */
#define OWN "application/vnd.lair."

static const struct {
	const char *type, *name;
} names[] = {
	{"text/plain", "text"},
	{"text/html", "html"},
	{"text/markdown", "markdown"},
	{"image/svg+xml", "svg"},
	{"image/png", "png"},
	{"image/jpeg", "jpeg"},
	{"application/pdf", "pdf"},
	{"text/latex", "latex"},
	{"application/json", "json"},
	{"application/javascript", "javascript"},
	{"application/vnd.lair.columns+json", "data"},
	{"application/vnd.lair.chart+json", "chart"},
};

static const char *name_of(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].type, type) == 0)
			return names[i].name;
	return NULL;
}

/* E2B gives a text without its quotes. */
static json_t *unquoted(const json_t *text)
{
	const char *data = json_string_value(text);
	size_t size = json_string_length(text);

	if (size >= 2 && data[0] == data[size - 1] && (data[0] == '\'' || data[0] == '"'))
		return json_stringn(data + 1, size - 2);
	return json_incref((json_t *)(uintptr_t)text);
}

json_t *result_line(struct lair_items bundle, struct lair_text text, bool main)
{
	json_t *line = json_pack("{s:s, s:b, s:{}}", "type", "result", "is_main_result", (int)main, "extra");
	json_t *data = json_data(bundle), *extra = json_object_get(line, "extra"), *value;
	const char *type, *name;

	if (text.data) {
		value = json_text(text);
		json_object_set_new(line, "text", unquoted(value));
		json_decref(value);
	}
	json_object_foreach(data, type, value)
	{
		name = name_of(type);
		if (!name && strncmp(type, OWN, strlen(OWN)) == 0)
			continue;
		if (!name)
			json_object_set(extra, type, value);
		else if (strcmp(name, "text") == 0)
			json_object_set_new(line, name, unquoted(value));
		else
			json_object_set(line, name, value);
	}
	/* Of a table E2B tells the columns instead. */
	if (json_object_get(line, "data"))
		json_object_del(line, "json");
	json_decref(data);
	return line;
}
