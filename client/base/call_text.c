/* A call of a function as text. Its names come from a session, so a terminal gets them tamed.
 */
#include "call_text.h"

#include "text.h"

#include "proto/wire.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>

#define NAMES_SHOWN 24

struct call_style {
	size_t value_max, names_max; /* bytes of each value; how many arguments */
	bool json;
};

static void value_write(FILE *out, struct lair_text packed, size_t max)
{
	_cleanup_(freep) char *text = lair_json(packed);
	size_t size = text ? strlen(text) : 0, cut = size;

	if (size > max)
		cut = max - text_cut_end(text, max);
	fprintf(out, "%.*s", (int)cut, text ? text : "?");
	if (cut < size)
		fprintf(out, "... (%zu bytes)", size);
}

static bool is_word(struct bytes name)
{
	for (size_t i = 0; i < name.size; i++)
		if (!isalnum((unsigned char)name.data[i]) && name.data[i] != '_')
			return false;
	return name.size > 0;
}

/* One that is no word is in quotes: it could look like several arguments. */
static void name_write(FILE *out, struct bytes name, size_t max)
{
	size_t size = name.size > max ? max - text_cut_end(name.data, max) : name.size;
	json_t *json = json_stringn(name.data, size);
	char *text = json ? json_dumps(json, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;

	fprintf(out, "%s%s", text ? text : "?", name.size > max ? "..." : "");
	free(text);
	json_decref(json);
}

static void arguments_write(FILE *out, struct lair_text arguments, const struct call_style *style)
{
	struct bytes raw = {.data = arguments.data, .size = arguments.size}, key, value;
	size_t cursor = 0, n = 0;

	while (wire_next_pair(raw, &cursor, &key, &value)) {
		if (n < style->names_max) {
			fputs(n ? ", " : "", out);
			if (style->json || !is_word(key) || key.size > style->value_max)
				name_write(out, key, style->value_max);
			else
				fprintf(out, "%.*s", (int)key.size, key.data);
			fputs(style->json ? ": " : "=", out);
			value_write(out, (struct lair_text){value.data, value.size}, style->value_max);
		}
		n++;
	}
	if (n > style->names_max)
		fprintf(out, " and %zu more", n - style->names_max);
}

char *call_text(struct lair_text function, struct lair_text arguments, uint64_t bytes, size_t value_max)
{
	const struct call_style style = {.value_max = value_max,
					 .names_max = value_max == SIZE_MAX ? SIZE_MAX : NAMES_SHOWN};
	char size[HUMAN_SIZE], *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	fprintf(out, "%.*s(", (int)function.size, function.data);
	if (arguments.data)
		arguments_write(out, arguments, &style);
	else
		fprintf(out, "... %s", human_bytes(size, bytes));
	fputc(')', out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text_tame(text);
}

char *call_arguments_text(struct lair_text arguments, size_t value_max)
{
	const struct call_style style = {.value_max = value_max, .names_max = NAMES_SHOWN, .json = true};
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	fputc('{', out);
	arguments_write(out, arguments, &style);
	fputc('}', out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text_tame(text);
}
