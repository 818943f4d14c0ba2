/* JSON for programs: texts, and documents as bytes. */
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
