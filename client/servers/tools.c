/* Tools of a server as functions: their names and descriptions. */
#include "upstream.h"

#include "base/json.h"

#include <fnmatch.h>
#include <stdio.h>

#define TOOLS_MAX 500
#define NAME_SIZE_MAX ((size_t)512)
#define DOC_SIZE_MAX ((size_t)8192)
#define SCHEMA_SIZE_MAX ((size_t)65536)

static json_t *find_in(json_t *functions, const char *key, const char *value)
{
	json_t *function;
	size_t i;

	json_array_foreach(functions, i, function)
	{
		if (strcmp(json_string_value(json_object_get(function, key)), value) == 0)
			return function;
	}
	return NULL;
}

json_t *tools_find(const struct upstream *upstream, const char *function)
{
	return find_in(upstream->functions, "name", function);
}

static bool allowed(const struct upstream *upstream, const char *function, const char *tool)
{
	const char *const *pattern = upstream->servers->options.allow;

	for (; pattern && *pattern; pattern++)
		if (fnmatch(*pattern, function, 0) == 0)
			return true;
	return config_allows(upstream->entry, tool);
}

static void schema_forget(json_t *function)
{
	json_object_set_new(function, "schema",
			    json_pack("{s:s, s:b}", "type", "object", "additionalProperties", 1));
	json_object_del(function, "returns");
}

/* The schema, unless it is no object or very long: then any arguments go to the server, which looks at them. */
static void add_schema(json_t *function, const char *key, json_t *schema)
{
	_cleanup_(freep) char *text = json_is_object(schema) ? json_compact(schema) : NULL;

	if (text && strlen(text) <= SCHEMA_SIZE_MAX)
		json_object_set(function, key, schema);
	else if (strcmp(key, "schema") == 0)
		schema_forget(function);
}

static void add_doc(json_t *function, const json_t *tool)
{
	const json_t *doc = json_object_get(tool, "description");
	size_t size = MIN(json_string_length(doc), DOC_SIZE_MAX);

	/* A character that is cut becomes one that says so. */
	if (size > 0)
		json_object_set_new(function, "doc", json_text((struct lair_text){json_string_value(doc), size}));
}

static void name_make(char name[static 2 * ALIAS_SIZE], const struct upstream *upstream, const char *tool)
{
	char alias[ALIAS_SIZE];

	alias_make(alias, tool, true);
	for (unsigned n = 2;; n++) {
		snprintf(name, 2 * ALIAS_SIZE, "%s.%s", upstream->alias, alias);
		if (!find_in(upstream->listed, "name", name))
			return;
		alias_next(alias, n);
	}
}

static void tool_take(struct upstream *upstream, json_t *tool)
{
	const char *raw = json_string_value(json_object_get(tool, "name"));
	bool reads = json_is_true(json_object_get(json_object_get(tool, "annotations"), "readOnlyHint"));
	char name[2 * ALIAS_SIZE];
	json_t *function;

	/* Without a name nobody can call it, and of two with one name the server knows only one. */
	if (!raw || !*raw || strlen(raw) > NAME_SIZE_MAX ||
	    strlen(raw) != json_string_length(json_object_get(tool, "name")) ||
	    find_in(upstream->listed, "tool", raw))
		return;
	name_make(name, upstream, raw);
	function = json_pack("{s:s, s:s, s:s}", "name", name, "server", upstream->name, "tool", raw);
	if (!function)
		return;
	add_doc(function, tool);
	add_schema(function, "schema", json_object_get(tool, "inputSchema"));
	add_schema(function, "returns", json_object_get(tool, "outputSchema"));
	if (!reads && !allowed(upstream, name, raw))
		json_object_set_new(function, "caution", json_true());
	json_array_append_new(upstream->listed, function);
}

const char *tools_take(struct upstream *upstream, json_t *result)
{
	json_t *tools = json_object_get(result, "tools"), *tool;
	size_t i;

	if (!json_is_array(tools))
		return "its list of tools is none";
	json_array_foreach(tools, i, tool)
	{
		if (json_array_size(upstream->listed) >= TOOLS_MAX)
			return "it has too many tools";
		tool_take(upstream, tool);
	}
	return NULL;
}

size_t tools_size(const json_t *functions)
{
	size_t size = 0, i;
	json_t *function;

	json_array_foreach(functions, i, function)
	{
		size += json_dumpb(function, NULL, 0, JSON_COMPACT);
	}
	return size;
}

/* Without its schema the server alone looks at its arguments; without a description it can be called, too. */
static json_t *shortened(const json_t *function, size_t most)
{
	json_t *shorter = json_copy((json_t *)function);

	schema_forget(shorter);
	if (json_dumpb(shorter, NULL, 0, JSON_COMPACT) > most)
		json_object_del(shorter, "doc");
	return shorter;
}

void tools_shorten(json_t *functions, size_t most)
{
	json_t *function;
	size_t i;

	for (size_t each = most / 16; each > 256 && tools_size(functions) > most; each /= 2) {
		json_array_foreach(functions, i, function)
		{
			if (json_dumpb(function, NULL, 0, JSON_COMPACT) > each)
				json_array_set_new(functions, i, shortened(function, each));
		}
	}
	while (json_array_size(functions) > 0 && tools_size(functions) > most)
		json_array_remove(functions, json_array_size(functions) - 1);
}
