/* The tools that ask, and change nothing. The answers come from code in the session: they are text, and cut. */
#include "tools.h"

#include "base/json.h"
#include "tool_result.h"

#define VARIABLES_MAX 200

static json_t *shape_json(struct lair_items shape)
{
	json_t *array = json_array();
	uint64_t length;
	size_t cursor = 0;

	while (lair_next_number(shape, &cursor, &length))
		json_array_append_new(array, json_integer((json_int_t)length));
	return array;
}

static json_t *variable_json(const struct lair_variable *variable)
{
	json_t *object = json_pack("{s:o, s:o, s:I, s:o}", "name", excerpt_of(variable->name), "type",
				   excerpt_of(variable->type), "size", (json_int_t)variable->size, "text",
				   excerpt_of(variable->text));

	if (variable->shape.data)
		json_object_set_new(object, "shape", shape_json(variable->shape));
	return object;
}

static void on_vars(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request), *array = json_array();
	struct lair_variable variable;
	size_t cursor = 0;

	while (json_array_size(array) < VARIABLES_MAX &&
	       lair_next_variable(lair_variables(call)->variables, &cursor, &variable))
		json_array_append_new(array, variable_json(&variable));
	json_object_set_new(structured, "variables", array);
	json_object_set_new(structured, "total", json_integer((json_int_t)lair_variables(call)->total));
	request_reply(request, result_new(structured));
}

void session_vars(struct request *request)
{
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;

	if (lair)
		request_wait(request, lair_vars(lair, &call, argument_session(request), NULL), &call, on_vars);
}

static void on_checked(struct request *request, struct lair_call *call)
{
	static const char said[] = "SyntaxError: ";
	const struct lair_checked *checked = lair_checked(call);
	json_t *structured = json_pack("{s:b}", "ok", (int)checked->valid);
	struct lair_text error = checked->error;

	/* The name of the error says it already. */
	if (error.size > sizeof(said) - 1 && memcmp(error.data, said, sizeof(said) - 1) == 0)
		error = (struct lair_text){error.data + sizeof(said) - 1, error.size - (sizeof(said) - 1)};
	if (!checked->valid)
		json_object_set_new(structured, "error",
				    json_pack("{s:s, s:o}", "name", checked->rule.data ? "Rule" : "SyntaxError",
					      "value", excerpt_of(error)));
	if (checked->line)
		json_object_set_new(structured, "line", json_integer((json_int_t)checked->line));
	if (checked->offset)
		json_object_set_new(structured, "offset", json_integer((json_int_t)checked->offset));
	if (checked->context.size > 0)
		json_object_set_new(structured, "context", excerpt_of(checked->context));
	request_reply(request, result_new(structured));
}

void check_syntax(struct request *request)
{
	json_t *code = json_object_get(request->arguments, "code");
	struct lair_code question = {
		.profile = request->engine->options.profile,
		.code = {json_string_value(code), json_string_length(code)},
	};
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;

	if (lair)
		request_wait(request, lair_check(lair, &call, &question), &call, on_checked);
}
