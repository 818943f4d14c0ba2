/* The table of tools as JSON: for this protocol, and for the APIs of models. */
#include "tools.h"

#include "tool_result.h"
#include "versions.h"

#define LIST_TTL_MS 3600000

/* @strict: every parameter is required, and an optional one can be null. */
static json_t *parameter_schema(const struct parameter *parameter, bool strict)
{
	json_t *type = json_string(parameter->type);

	if (strict && !parameter->required)
		type = json_pack("[o, s]", type, "null");
	return json_pack("{s:o, s:s}", "type", type, "description", parameter->description);
}

static json_t *input_schema(const struct tool *tool, bool strict)
{
	json_t *properties = json_object(), *required = json_array(), *schema;
	const struct parameter *const *at;

	tool_for_each(at, tool->parameters)
	{
		json_object_set_new(properties, (*at)->name, parameter_schema(*at, strict));
		if (strict || (*at)->required)
			json_array_append_new(required, json_string((*at)->name));
	}
	schema = json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
			   "additionalProperties", 0);
	if (json_array_size(required) == 0)
		json_object_del(schema, "required");
	return schema;
}

static json_t *members_schema(const struct property *members);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the table */
static json_t *property_schema(const struct property *property)
{
	static const char *const types[] = {
		[KIND_TEXT] = "string",	   [KIND_COUNT] = "integer",  [KIND_FLAG] = "boolean",
		[KIND_TEXTS] = "string",   [KIND_COUNTS] = "integer", [KIND_OBJECT] = "object",
		[KIND_OBJECTS] = "object",
	};
	bool list = property->kind == KIND_TEXTS || property->kind == KIND_COUNTS || property->kind == KIND_OBJECTS;
	json_t *schema = property->members ? members_schema(property->members)
					   : json_pack("{s:s}", "type", types[property->kind]);
	json_t *values = property->values ? json_array() : NULL;

	for (const char *const *at = property->values; at && *at; at++)
		json_array_append_new(values, json_string(*at));
	if (values)
		json_object_set_new(schema, "enum", values);
	if (list)
		schema = json_pack("{s:s, s:o}", "type", "array", "items", schema);
	if (property->description)
		json_object_set_new(schema, "description", json_string(property->description));
	return schema;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the table */
static json_t *members_schema(const struct property *members)
{
	json_t *properties = json_object();

	for (const struct property *at = members; at->name; at++)
		json_object_set_new(properties, at->name, property_schema(at));
	return json_pack("{s:s, s:o}", "type", "object", "properties", properties);
}

static json_t *output_schema(const struct tool *tool)
{
	const struct property *const *at;
	json_t *properties = json_object();

	tool_for_each(at, tool->properties) json_object_set_new(properties, (*at)->name, property_schema(*at));
	return json_pack("{s:s, s:o, s:[s], s:b}", "type", "object", "properties", properties, "required", "ok",
			 "additionalProperties", 0);
}

/* What the tool does to existing things. Whether a tool can reach outside its session is not told: only the
 * operator knows that. */
static json_t *annotations(const struct tool *tool)
{
	json_t *hints =
		json_pack("{s:s, s:b}", "title", tool->title, "readOnlyHint", (tool->hints & HINT_READ_ONLY) != 0);

	if (tool->hints & (HINT_DESTRUCTIVE | HINT_HARMLESS))
		json_object_set_new(hints, "destructiveHint", json_boolean(tool->hints & HINT_DESTRUCTIVE));
	if (tool->hints & HINT_IDEMPOTENT)
		json_object_set_new(hints, "idempotentHint", json_true());
	return hints;
}

static json_t *tool_json(const struct tool *tool, enum mcp_format format)
{
	switch (format) {
	case MCP_OPENAI:
		return json_pack("{s:s, s:{s:s, s:s, s:o, s:b}}", "type", "function", "function", "name",
				 tool->name, "description", tool->description, "parameters",
				 input_schema(tool, true), "strict", 1);
	case MCP_ANTHROPIC:
		return json_pack("{s:s, s:s, s:o}", "name", tool->name, "description", tool->description,
				 "input_schema", input_schema(tool, false));
	case MCP_TOOLS:
		return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "name", tool->name, "title", tool->title,
				 "description", tool->description, "inputSchema", input_schema(tool, false),
				 "outputSchema", output_schema(tool), "annotations", annotations(tool));
	}
	return NULL;
}

json_t *mcp_tools(enum mcp_format format, bool full)
{
	json_t *array = json_array();

	for (const struct tool *tool = tools; tool->name; tool++)
		if (full || !tool->full)
			json_array_append_new(array, tool_json(tool, format));
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
