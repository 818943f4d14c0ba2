/* tools/call, until a tool begins. If a model has wrong arguments, it gets a result that says so. If there is no
 * such tool, or nothing to find arguments in, it is an error of the protocol. */
#include "tools.h"

#include "tool_result.h"

#include <stdio.h>

#define SENTENCE_SIZE 256

static const struct tool *tool_find(const struct engine *engine, const char *name)
{
	for (const struct tool *tool = tools; tool->name; tool++)
		if (strcmp(tool->name, name) == 0 && (!tool->full || engine->options.full))
			return tool;
	return NULL;
}

static const struct parameter *parameter_find(const struct tool *tool, const char *name)
{
	const struct parameter *const *at;

	tool_for_each(at, tool->parameters) if (strcmp((*at)->name, name) == 0) return *at;
	return NULL;
}

/* ---- checking ---- */

static bool type_fits(const struct parameter *parameter, const json_t *value)
{
	if (strcmp(parameter->type, "string") == 0)
		return json_is_string(value);
	if (strcmp(parameter->type, "boolean") == 0)
		return json_is_boolean(value);
	if (strcmp(parameter->type, "integer") == 0)
		return json_is_integer(value) && json_integer_value(value) >= (parameter->zero ? 0 : 1);
	return json_is_number(value) && json_number_value(value) > 0;
}

static const char *type_name(const struct parameter *parameter)
{
	if (strcmp(parameter->type, "string") == 0)
		return "a string";
	if (strcmp(parameter->type, "boolean") == 0)
		return "true or false";
	if (strcmp(parameter->type, "integer") == 0)
		return parameter->zero ? "an integer, 0 or above" : "an integer above 0";
	return "a number above 0";
}

/* Whether @id names a session of another user. Root can name one, but a model that root serves must not. */
bool session_is_anothers(const struct engine *engine, const char *id)
{
	size_t n = strspn(id, "0123456789");

	return geteuid() == 0 && strspn(id, "0") < n && id[n] == '/' &&
	       !(engine->options.session && strcmp(id, engine->options.session) == 0);
}

static bool names_session(const struct parameter *parameter)
{
	return strcmp(parameter->name, "session_id") == 0 || strcmp(parameter->name, "new_session_id") == 0;
}

/* Only code may contain a NUL: Python then says what is wrong. */
static bool value_check(char sentence[static SENTENCE_SIZE], const struct engine *engine,
			const struct parameter *parameter, const json_t *value)
{
	if (!value || json_is_null(value)) {
		snprintf(sentence, SENTENCE_SIZE, "%s is missing", parameter->name);
		return !parameter->required;
	}
	if (!type_fits(parameter, value)) {
		snprintf(sentence, SENTENCE_SIZE, "%s must be %s", parameter->name, type_name(parameter));
		return false;
	}
	if (json_is_string(value) && !json_text_value(value) && strcmp(parameter->name, "code") != 0) {
		snprintf(sentence, SENTENCE_SIZE, "%s has a NUL in it", parameter->name);
		return false;
	}
	if (names_session(parameter) && value && session_is_anothers(engine, json_text_value(value))) {
		snprintf(sentence, SENTENCE_SIZE, "%s must not begin with the number of a user and a slash",
			 parameter->name);
		return false;
	}
	return true;
}

static bool arguments_check(char sentence[static SENTENCE_SIZE], const struct engine *engine,
			    const struct tool *tool, json_t *arguments)
{
	const struct parameter *const *at;
	const char *name;
	json_t *value;

	json_object_foreach(arguments, name, value)
	{
		if (!parameter_find(tool, name)) {
			snprintf(sentence, SENTENCE_SIZE, "%s has no argument \"%.64s\"", tool->name, name);
			return false;
		}
	}
	tool_for_each(at, tool->parameters) if (!value_check(sentence, engine, *at,
							     json_object_get(arguments, (*at)->name))) return false;
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
