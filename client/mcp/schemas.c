/* The descriptions of the tools: for this protocol, and for the APIs of models. */
#include "tools.h"

#include "base/embed.h"
#include "tool_result.h"
#include "versions.h"

#include "proto/causes.h"

#define LIST_TTL_MS 3600000

EMBED(tools_text, TOOLS_FILE);

/* The states of a session are those of proto/causes.h. */
static void states_add(json_t *properties)
{
	json_t *names = json_array();

	for (size_t i = 0; i < N_FATES; i++)
		json_array_append_new(names, json_string(fates[i].name));
	json_object_set_new(json_object_get(properties, "state"), "enum", names);
}

const json_t *tools_document(void)
{
	static json_t *document;

	if (!document) {
		document = json_loads(tools_text, JSON_REJECT_DUPLICATES, NULL);
		states_add(json_object_get(document, "properties"));
	}
	return document;
}

const json_t *tool_description(const struct tool *tool)
{
	const json_t *it;
	size_t i;

	json_array_foreach(json_object_get(tools_document(), "tools"), i,
			   it) if (strcmp(json_string_value(json_object_get(it, "name")), tool->name) ==
				   0) return it;
	return NULL;
}

/* @strict: every parameter is required, and an optional one can be null. */
static json_t *parameter_schema(const json_t *parameter, bool strict, bool required)
{
	json_t *type = json_object_get(parameter, "type");

	return strict && !required ? json_pack("{s:[O, s], s:O}", "type", type, "null", "description",
					       json_object_get(parameter, "description"))
				   : json_pack("{s:O, s:O}", "type", type, "description",
					       json_object_get(parameter, "description"));
}

static json_t *input_schema(const json_t *tool, bool strict)
{
	json_t *properties = json_object(), *required = json_array(), *schema, *name;
	size_t i;

	json_array_foreach(json_object_get(tool, "parameters"), i, name)
	{
		const json_t *parameter =
			json_object_get(json_object_get(tools_document(), "parameters"), json_string_value(name));
		bool needed = json_is_true(json_object_get(parameter, "required"));

		json_object_set_new(properties, json_string_value(name),
				    parameter_schema(parameter, strict, needed));
		if (strict || needed)
			json_array_append(required, name);
	}
	schema = json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
			   "additionalProperties", 0);
	if (json_array_size(required) == 0)
		json_object_del(schema, "required");
	return schema;
}

/* A name may be that of a group of properties. */
static void properties_add(json_t *properties, const json_t *names)
{
	const json_t *all = tools_document(), *name;
	size_t i;

	json_array_foreach(names, i, name)
	{
		const char *text = json_string_value(name);
		const json_t *group = json_object_get(json_object_get(all, "groups"), text);

		if (group)
			properties_add(properties, group);
		else
			json_object_set(properties, text,
					json_object_get(json_object_get(all, "properties"), text));
	}
}

static json_t *output_schema(const json_t *tool)
{
	json_t *properties = json_object();

	properties_add(properties, json_object_get(tool, "properties"));
	return json_pack("{s:s, s:o, s:[s], s:b}", "type", "object", "properties", properties, "required", "ok",
			 "additionalProperties", 0);
}

/* Whether a tool can reach outside its session is not told: only the operator knows that. */
static json_t *annotations(const json_t *tool)
{
	json_t *hints = json_copy(json_object_get(tool, "annotations"));

	json_object_set(hints, "title", json_object_get(tool, "title"));
	return hints;
}

static json_t *tool_json(const json_t *tool, enum mcp_format format)
{
	json_t *name = json_object_get(tool, "name"), *description = json_object_get(tool, "description");

	switch (format) {
	case MCP_OPENAI:
		return json_pack("{s:s, s:{s:O, s:O, s:o, s:b}}", "type", "function", "function", "name", name,
				 "description", description, "parameters", input_schema(tool, true), "strict", 1);
	case MCP_ANTHROPIC:
		return json_pack("{s:O, s:O, s:o}", "name", name, "description", description, "input_schema",
				 input_schema(tool, false));
	case MCP_TOOLS:
		return json_pack("{s:O, s:O, s:O, s:o, s:o, s:o}", "name", name, "title",
				 json_object_get(tool, "title"), "description", description, "inputSchema",
				 input_schema(tool, false), "outputSchema", output_schema(tool), "annotations",
				 annotations(tool));
	}
	return NULL;
}

json_t *mcp_tools(enum mcp_format format, bool full)
{
	json_t *array = json_array();
	const json_t *tool;
	size_t i;

	json_array_foreach(json_object_get(tools_document(), "tools"), i, tool)
	{
		if (full || !json_is_true(json_object_get(tool, "full")))
			json_array_append_new(array, tool_json(tool, format));
	}
	return array;
}

void tools_list(struct request *request)
{
	json_t *cursor = json_object_get(request->arguments, "cursor"), *result;

	if (cursor && !json_is_null(cursor)) {
		request_refuse(request, RPC_INVALID_PARAMS, "there is no page of that cursor", NULL);
		return;
	}
	result = json_pack("{s:o}", "tools", mcp_tools(MCP_TOOLS, request->engine->options.full));
	versions_cacheable(request, result, LIST_TTL_MS, true);
	request_reply(request, result);
}
