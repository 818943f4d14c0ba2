/* The options of a cell. lair.h says what they mean to a program, PROTOCOL.md what they are on the wire. */
#include "options.h"

#include "proto/message.h"

#define OPTION(type_, member)                                                                                      \
	.name = #member, .type = OPTION_##type_, .place = offsetof(struct lair_exec, member),                      \
	.field = offsetof(struct exec_request, member)

const struct exec_option exec_options[] = {
	{OPTION(TEXT, session)},
	{OPTION(TEXT, profile)},
	{OPTION(WORDS, settings)},
	{OPTION(TEXT, key)},
	{OPTION(TEXT, notebook)},
	{OPTION(FLAG, unlimited)},
	{OPTION(SECONDS, timeout), .doors = DOOR_HTTP | DOOR_TOOLS, .tool = "timeout_sec",
	 .help = "seconds; 0: the profile's"},
	{OPTION(NUMBER, birth), .doors = DOOR_HTTP, .help = "run it only in the session of this birth"},
	{OPTION(FLAG, detach), .doors = DOOR_EXEC | DOOR_HTTP, .letter = 'd',
	 .help = "do not wait; the answer is the key of the result, for lair attach"},
	{OPTION(TEXT, figure), .doors = DOOR_EXEC | DOOR_PROMPT | DOOR_HTTP, .letter = 'g', .flag = "svg",
	 .choices = {"png", "svg"}, .help = "figures as SVG, not as PNG"},
	{OPTION(TEXT, directory), .doors = DOOR_EXEC | DOOR_HTTP | DOOR_TOOLS, .letter = 'C', .argument = "PATH",
	 .tool = "cwd_rel", .help = "run it there, in the workspace"},
	{OPTION(SETTINGS, env), .doors = DOOR_EXEC | DOOR_HTTP, .letter = 'e', .argument = "NAME=VALUE",
	 .help = "environment variables for it alone"},
	{OPTION(FLAG, values), .doors = DOOR_EXEC | DOOR_HTTP, .letter = 'v',
	 .help = "in JSON, an error has the values of small local variables"},
	{OPTION(FLAG, reload), .doors = DOOR_EXEC | DOOR_PROMPT | DOOR_HTTP, .letter = 'r',
	 .help = "first import again the modules that were edited in the workspace"},
	{OPTION(WORDS, packages), .doors = DOOR_EXEC, .letter = 'w', .flag = "with", .argument = "PACKAGE",
	 .help = "install it in the session first, unless it is there; polars, duckdb==1.*"},
	{OPTION(WORDS, argv)},
	{OPTION(FLAG, again), .doors = DOOR_EXEC | DOOR_PROMPT | DOOR_HTTP, .letter = 'a',
	 .help = "its calls may repeat what was done before"},
};

const size_t n_exec_options = ARRAY_SIZE(exec_options);
_Static_assert(ARRAY_SIZE(exec_options) <= EXEC_OPTIONS_MAX, "too many options");

int strings_put(msgpack_sbuffer *buffer, const char *const *strings)
{
	size_t n = 0;

	if (!strings)
		return 0;
	while (strings[n])
		n++;
	wire_put_array(buffer, n);
	for (size_t i = 0; i < n; i++) {
		if (!utf8_valid(bytes_of(strings[i])))
			return -EILSEQ;
		wire_put_string(buffer, bytes_of(strings[i]));
	}
	return 0;
}

static int option_put(void *field, msgpack_sbuffer *list, enum option_type type, const void *place)
{
	int r = 0;

	switch (type) {
	case OPTION_FLAG:
		*(bool *)field = *(const bool *)place;
		break;
	case OPTION_SECONDS:
		*(double *)field = *(const double *)place;
		break;
	case OPTION_NUMBER:
		*(uint64_t *)field = *(const uint64_t *)place;
		break;
	case OPTION_TEXT:
		*(struct bytes *)field = bytes_of(*(const char *const *)place);
		break;
	case OPTION_WORDS:
	case OPTION_SETTINGS:
		r = strings_put(list, *(const char *const *const *)place);
		*(struct bytes *)field = wire_bytes(list);
		break;
	}
	return r;
}

int exec_options_put(struct exec_request *request, msgpack_sbuffer lists[static EXEC_OPTIONS_MAX],
		     const struct lair_exec *exec)
{
	int r = 0;

	for (size_t i = 0; !r && i < n_exec_options; i++)
		r = option_put((char *)request + exec_options[i].field, &lists[i], exec_options[i].type,
			       (const char *)exec + exec_options[i].place);
	return r;
}

static const char *name_at(const struct exec_option *option, unsigned door)
{
	return door == DOOR_TOOLS && option->tool ? option->tool : option->name;
}

static void option_read(void *place, enum option_type type, const json_t *value)
{
	switch (type) {
	case OPTION_FLAG:
		*(bool *)place = json_is_true(value);
		break;
	case OPTION_SECONDS:
		*(double *)place = json_number_value(value);
		break;
	case OPTION_NUMBER:
		*(uint64_t *)place = (uint64_t)json_number_value(value);
		break;
	case OPTION_TEXT:
		*(const char **)place = json_string_value(value);
		break;
	case OPTION_WORDS:
	case OPTION_SETTINGS:
		break;
	}
}

void exec_options_read(struct lair_exec *exec, const json_t *object, unsigned door)
{
	for (const struct exec_option *at = exec_options; at < exec_options + n_exec_options; at++) {
		const json_t *value = at->doors & door ? json_object_get(object, name_at(at, door)) : NULL;

		if (value && !json_is_null(value))
			option_read((char *)exec + at->place, at->type, value);
	}
}

static json_t *schema_of(const struct exec_option *option)
{
	switch (option->type) {
	case OPTION_FLAG:
		return json_pack("{s:s}", "type", "boolean");
	case OPTION_SECONDS:
		return json_pack("{s:s, s:i, s:i}", "type", "number", "minimum", 0, "maximum", 1000000000);
	case OPTION_NUMBER:
		return json_pack("{s:s, s:i}", "type", "integer", "minimum", 0);
	case OPTION_TEXT:
		if (*option->choices)
			return json_pack("{s:s, s:[ss]}", "type", "string", "enum", option->choices[0],
					 option->choices[1]);
		return json_pack("{s:s, s:i}", "type", "string", "minLength", 1);
	case OPTION_WORDS:
		return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
	case OPTION_SETTINGS:
		return json_pack("{s:s}", "type", "object");
	}
	return NULL;
}

void exec_options_describe(json_t *properties, unsigned door)
{
	for (const struct exec_option *at = exec_options; at < exec_options + n_exec_options; at++) {
		json_t *schema = at->doors & door ? schema_of(at) : NULL;

		if (!schema)
			continue;
		json_object_set_new(schema, "description", json_string(at->help));
		json_object_set_new(properties, name_at(at, door), schema);
	}
}
