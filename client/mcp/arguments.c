/* tools/call, until a tool begins. If a model has wrong arguments, it gets a result that says so. If there is no
 * such tool, or nothing to find arguments in, it is an error of the protocol. */
#include "tools.h"

#include "tool_result.h"

#include <stdio.h>

#define SENTENCE_SIZE 256

static const struct tool *tool_find(const struct engine *engine, const char *name)
{
	for (const struct tool *tool = tools; tool->name; tool++)
		if (strcmp(tool->name, name) == 0 &&
		    (engine->options.full || !json_is_true(json_object_get(tool_description(tool), "full"))))
			return tool;
	return NULL;
}

/* ---- checking ---- */

static const char *type_of(const json_t *parameter)
{
	return json_string_value(json_object_get(parameter, "type"));
}

static bool zero_fits(const json_t *parameter)
{
	return json_is_true(json_object_get(parameter, "zero"));
}

static bool type_fits(const json_t *parameter, const json_t *value)
{
	if (strcmp(type_of(parameter), "string") == 0)
		return json_is_string(value);
	if (strcmp(type_of(parameter), "boolean") == 0)
		return json_is_boolean(value);
	if (strcmp(type_of(parameter), "integer") == 0)
		return json_is_integer(value) && json_integer_value(value) >= (zero_fits(parameter) ? 0 : 1);
	return json_is_number(value) && json_number_value(value) > 0;
}

static const char *type_name(const json_t *parameter)
{
	if (strcmp(type_of(parameter), "string") == 0)
		return "a string";
	if (strcmp(type_of(parameter), "boolean") == 0)
		return "true or false";
	if (strcmp(type_of(parameter), "integer") == 0)
		return zero_fits(parameter) ? "an integer, 0 or above" : "an integer above 0";
	return "a number above 0";
}

/* Whether @id names a session of another user. Root can name one, but a model that root serves must not. */
bool session_is_anothers(const struct engine *engine, const char *id)
{
	size_t n = strspn(id, "0123456789");

	return geteuid() == 0 && strspn(id, "0") < n && id[n] == '/' &&
	       !(engine->options.session && strcmp(id, engine->options.session) == 0);
}

static bool names_session(const char *name)
{
	return strcmp(name, "session_id") == 0 || strcmp(name, "new_session_id") == 0;
}

/* Only code may contain a NUL: Python then reports the error. */
static bool value_check(char sentence[static SENTENCE_SIZE], const struct engine *engine, const char *name,
			const json_t *value)
{
	const json_t *parameter = json_object_get(json_object_get(tools_document(), "parameters"), name);

	if (!value || json_is_null(value)) {
		snprintf(sentence, SENTENCE_SIZE, "%s is missing", name);
		return !json_is_true(json_object_get(parameter, "required"));
	}
	if (!type_fits(parameter, value)) {
		snprintf(sentence, SENTENCE_SIZE, "%s must be %s", name, type_name(parameter));
		return false;
	}
	if (json_is_string(value) && !json_text_value(value) && strcmp(name, "code") != 0) {
		snprintf(sentence, SENTENCE_SIZE, "%s has a NUL in it", name);
		return false;
	}
	if (names_session(name) && session_is_anothers(engine, json_text_value(value))) {
		snprintf(sentence, SENTENCE_SIZE, "%s must not begin with the number of a user and a slash", name);
		return false;
	}
	return true;
}

static bool has(const json_t *names, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(names, i, one) if (strcmp(json_string_value(one), name) == 0) return true;
	return false;
}

static bool arguments_check(char sentence[static SENTENCE_SIZE], const struct engine *engine,
			    const struct tool *tool, json_t *arguments)
{
	const json_t *names = json_object_get(tool_description(tool), "parameters");
	json_t *value, *one;
	const char *name;
	size_t i;

	json_object_foreach(arguments, name, value)
	{
		if (!has(names, name)) {
			snprintf(sentence, SENTENCE_SIZE, "%s has no argument \"%.64s\"", tool->name, name);
			return false;
		}
	}
	json_array_foreach(names, i, one)
	{
		name = json_string_value(one);
		if (!value_check(sentence, engine, name, json_object_get(arguments, name)))
			return false;
	}
	return true;
}

void tools_call(struct request *request)
{
	const char *name = json_text_value(json_object_get(request->arguments, "name"));
	json_t *arguments = json_object_get(request->arguments, "arguments");
	char sentence[SENTENCE_SIZE];

	if (!name || (arguments && !json_is_object(arguments) && !json_is_null(arguments))) {
		request_refuse(request, RPC_INVALID_PARAMS, "name must be a string, and arguments an object", NULL);
		return;
	}
	request->tool = tool_find(request->engine, name);
	if (!request->tool) {
		snprintf(sentence, sizeof(sentence), "Unknown tool: %.128s", name);
		request_refuse(request, RPC_INVALID_PARAMS, sentence, NULL);
		return;
	}
	json_incref(arguments);
	json_decref(request->arguments);
	request->arguments = arguments;
	if (arguments_check(sentence, request->engine, request->tool, arguments))
		request->tool->run(request);
	else
		request_reply(request, result_refused(request, "bad_arguments", sentence));
}

/* ---- reading ---- */

const char *argument_text(const struct request *request, const char *name)
{
	return json_string_value(json_object_get(request->arguments, name));
}

double argument_number(const struct request *request, const char *name)
{
	return json_number_value(json_object_get(request->arguments, name));
}

const char *argument_session(const struct request *request)
{
	const struct mcp_options *options = &request->engine->options;
	const char *given = argument_text(request, "session_id");

	return given ? given : options->session ? options->session : request->engine->session;
}
