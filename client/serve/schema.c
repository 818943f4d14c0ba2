/* A check of documents against the few words of JSON Schema that our schemas use. */
#include "schema.h"

#include "base/embed.h"
#include "lib/options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PATH_MAX_SHOWN 96

EMBED(schemas_text, SCHEMAS_FILE);

static json_t *all;

int schemas_open(void)
{
	json_error_t error;

	all = json_loads(schemas_text, JSON_REJECT_DUPLICATES, &error);
	if (!all)
		fprintf(stderr, "schemas.json:%d: %s\n", error.line, error.text);
	exec_options_describe(json_object_get(json_object_get(all, "Exec"), "properties"), DOOR_HTTP);
	return all ? 0 : -EINVAL;
}

void schemas_close(void)
{
	json_decref(steal_ptr(&all));
}

json_t *schemas_all(void)
{
	return all;
}

struct check {
	char path[PATH_MAX_SHOWN];
	char *why;
};

static bool wrong(const struct check *check, const char *format, ...) _printf_(2, 3);

static bool wrong(const struct check *check, const char *format, ...)
{
	int n = snprintf(check->why, SCHEMA_WHY_SIZE, "%s%s", check->path, *check->path ? ": " : "");
	va_list args;

	va_start(args, format);
	vsnprintf(check->why + n, (size_t)(SCHEMA_WHY_SIZE - n), format, args);
	va_end(args);
	return false;
}

static bool is_type(const char *type, const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return strcmp(type, "object") == 0;
	case JSON_ARRAY:
		return strcmp(type, "array") == 0;
	case JSON_STRING:
		return strcmp(type, "string") == 0;
	case JSON_INTEGER:
		return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
	case JSON_REAL:
		return strcmp(type, "number") == 0 ||
		       (strcmp(type, "integer") == 0 && floor(json_real_value(value)) == json_real_value(value));
	case JSON_TRUE:
	case JSON_FALSE:
		return strcmp(type, "boolean") == 0;
	case JSON_NULL:
		return strcmp(type, "null") == 0;
	}
	return false;
}

static bool check_type(const struct check *check, const json_t *type, const json_t *value)
{
	size_t i;
	json_t *one;

	if (json_is_string(type))
		return is_type(json_string_value(type), value) ||
		       wrong(check, "expected %s %s", strchr("aeio", *json_string_value(type)) ? "an" : "a",
			     json_string_value(type));
	json_array_foreach(type, i, one) if (is_type(json_string_value(one), value)) return true;
	return !type || wrong(check, "expected %s, or null", json_string_value(json_array_get(type, 0)));
}

static bool check_enum(const struct check *check, const json_t *values, const json_t *value)
{
	size_t i;
	json_t *one;

	json_array_foreach(values, i, one) if (json_equal(one, value)) return true;
	return !values || wrong(check, "expected one of the values that the schema names");
}

/* Characters, not bytes. */
static size_t length_of(const json_t *value)
{
	const char *text = json_string_value(value);
	size_t n = 0, size = json_string_length(value);

	for (size_t i = 0; i < size; i++)
		n += (text[i] & 0xc0) != 0x80;
	return n;
}

static bool check_range(const struct check *check, const json_t *schema, const char *least, const char *most,
			double number, const char *what)
{
	const json_t *from = json_object_get(schema, least), *to = json_object_get(schema, most);

	if (from && number < json_number_value(from))
		return wrong(check, "expected at least %g%s", json_number_value(from), what);
	if (to && number > json_number_value(to))
		return wrong(check, "expected at most %g%s", json_number_value(to), what);
	return true;
}

static bool check_value(struct check *check, const json_t *schema, const json_t *value);

static bool check_below(struct check *check, const char *name, const json_t *schema, const json_t *value)
{
	size_t size = strlen(check->path);
	bool ok;

	snprintf(check->path + size, sizeof(check->path) - size, "%s%.40s", size ? "." : "", name);
	ok = check_value(check, schema, value);
	check->path[size] = '\0';
	return ok;
}

static bool check_object(struct check *check, const json_t *schema, const json_t *value)
{
	const json_t *properties = json_object_get(schema, "properties"), *one;
	size_t i;
	const char *name;
	json_t *member;

	json_array_foreach(
		json_object_get(schema, "required"), i,
		one) if (!json_object_get(value, json_string_value(one))) return wrong(check, "\"%s\" is missing",
										       json_string_value(one));
	json_object_foreach((json_t *)(uintptr_t)value, name, member)
	{
		const json_t *below = json_object_get(properties, name);

		if (below && !check_below(check, name, below, member))
			return false;
		if (!below && json_is_false(json_object_get(schema, "additionalProperties")))
			return wrong(check, "there is no \"%.40s\" here", name);
	}
	return true;
}

static bool check_array(struct check *check, const json_t *schema, const json_t *value)
{
	const json_t *items = json_object_get(schema, "items");
	json_t *item;
	size_t i;
	char name[32];

	if (!check_range(check, schema, "minItems", "maxItems", (double)json_array_size(value), " of them"))
		return false;
	json_array_foreach(value, i, item)
	{
		snprintf(name, sizeof(name), "%zu", i);
		if (items && !check_below(check, name, items, item))
			return false;
	}
	return true;
}

static bool check_value(struct check *check, const json_t *schema, const json_t *value)
{
	const char *ref = json_string_value(json_object_get(schema, "$ref"));

	if (ref)
		return check_value(check, json_object_get(all, strrchr(ref, '/') + 1), value);
	if (!check_type(check, json_object_get(schema, "type"), value) ||
	    !check_enum(check, json_object_get(schema, "enum"), value))
		return false;
	if (json_is_string(value))
		return check_range(check, schema, "minLength", "maxLength", (double)length_of(value),
				   " characters");
	if (json_is_number(value))
		return check_range(check, schema, "minimum", "maximum", json_number_value(value), "");
	if (json_is_object(value))
		return check_object(check, schema, value);
	return !json_is_array(value) || check_array(check, schema, value);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): a check writes to it */
bool schema_check(const char *name, const json_t *document, char why[static SCHEMA_WHY_SIZE])
{
	struct check check = {.why = why};

	return check_value(&check, json_object_get(all, name), document);
}

/* The value of @text, if the schema wants another type than a string. New. */
static json_t *parameter_value(const json_t *schema, const char *text)
{
	const char *type = json_string_value(json_object_get(schema, "type"));
	json_t *value = NULL;

	if (type && strcmp(type, "string") != 0)
		value = json_loads(text, JSON_DECODE_ANY, NULL);
	return value ? value : json_string(text);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): a check writes to it */
bool schema_check_query(const char *text, const json_t *query, char why[static SCHEMA_WHY_SIZE])
{
	json_t *properties = json_loads(text, 0, NULL), *member;
	struct check check = {.why = why};
	const char *name;
	bool ok = true;

	json_object_foreach((json_t *)(uintptr_t)query, name, member)
	{
		const json_t *schema = json_object_get(properties, name);
		json_t *value = parameter_value(schema, json_string_value(member));

		if (ok)
			ok = schema ? check_below(&check, name, schema, value)
				    : wrong(&check, "there is no parameter \"%.40s\" here", name);
		json_decref(value);
	}
	json_decref(properties);
	return ok;
}
