/* How a function is given on the command line: a name, parameters, and the command that answers. */
#include "signature.h"

#include <ctype.h>
#include <stdio.h>

static const struct {
	const char *name, *type; /* type: in JSON Schema; NULL: any */
} types[] = {
	{"str", "string"}, {"int", "integer"}, {"float", "number"}, {"bool", "boolean"},
	{"list", "array"}, {"dict", "object"}, {"any", NULL},
};

static const char *space_skip(const char *at)
{
	return at + strspn(at, " \t");
}

static size_t identifier_size(const char *text)
{
	size_t n = 0;

	if (isdigit((unsigned char)*text))
		return 0;
	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	return n;
}

/* With dots: a function in a namespace. */
static size_t name_size(const char *text)
{
	size_t n = identifier_size(text), part = n;

	while (part > 0 && text[n] == '.') {
		part = identifier_size(text + n + 1);
		n += part ? part + 1 : 0;
	}
	return n;
}

static int type_set(json_t *property, const char *name, size_t size, char why[static 256])
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strlen(types[i].name) != size || memcmp(types[i].name, name, size) != 0)
			continue;
		return types[i].type && json_object_set_new(property, "type", json_string(types[i].type)) ? -ENOMEM
													  : 0;
	}
	snprintf(why, 256, "a type is str, int, float, bool, list, dict or any; got \"%.*s\"", (int)MIN(size, 40UL),
		 name);
	return -EINVAL;
}

static int default_set(json_t *defaults, const char *name, json_t *property, const char **atp, char why[static 256])
{
	json_error_t error;
	json_t *value = json_loads(*atp, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &error);

	if (!value) {
		snprintf(why, 256, "a default is JSON, such as 5, \"x\", true or null; got \"%.40s\"", *atp);
		return -EINVAL;
	}
	*atp += error.position;
	return json_object_set(property, "default", value) || json_object_set_new(defaults, name, value) ? -ENOMEM
													 : 0;
}

/* One parameter. */
static int parameter_parse(struct signature *signature, json_t *schema, const char **atp, char why[static 256])
{
	const char *at = space_skip(*atp);
	size_t size = identifier_size(at);
	_cleanup_(freep) char *name = strndup(at, size);
	json_t *properties = json_object_get(schema, "properties"), *required = json_object_get(schema, "required");
	json_t *property = json_object();
	int r = 0;

	if (size == 0) {
		json_decref(property);
		snprintf(why, 256, "a parameter has a name; got \"%.40s\"", at);
		return -EINVAL;
	}
	if (!name || json_object_set_new(properties, name, property))
		return -ENOMEM;
	at = space_skip(at + size);
	if (*at == ':') {
		const char *type = space_skip(at + 1);
		size_t n = identifier_size(type);

		r = type_set(property, type, n, why);
		at = space_skip(type + n);
	}
	if (!r && *at == '=') {
		at = space_skip(at + 1);
		r = default_set(signature->defaults, name, property, &at, why);
	} else if (!r) {
		r = json_array_append_new(required, json_string(name)) ? -ENOMEM : 0;
	}
	*atp = space_skip(at);
	return r;
}

/* The text between brackets, and the closing one. */
static int parameters_parse(struct signature *signature, json_t *schema, const char **atp, char why[static 256])
{
	int r = 0;

	*atp = space_skip(*atp);
	while (!r && **atp != ')') {
		r = parameter_parse(signature, schema, atp, why);
		if (!r && **atp == ',' && *space_skip(*atp + 1) != ')') {
			(*atp)++;
		} else if (!r && **atp != ')') {
			snprintf(why, 256, "expected , or ) between parameters; got \"%.40s\"", *atp);
			r = -EINVAL;
		}
	}
	*atp += !r;
	return r;
}

int signature_parse(struct signature *signature, const char *text, char why[static 256])
{
	size_t size = name_size(text);
	const char *at = space_skip(text + size);
	bool open = *at != '(';
	json_t *schema = json_pack("{s:s, s:{}, s:[], s:b}", "type", "object", "properties", "required",
				   "additionalProperties", open);
	int r = schema ? 0 : -ENOMEM;

	*signature = (struct signature){.name = strndup(text, size), .defaults = json_object()};
	if (!r && !open) {
		at++;
		r = parameters_parse(signature, schema, &at, why);
		at = space_skip(at);
	}
	if (!r && (size == 0 || *at != '=' || !*space_skip(at + 1))) {
		snprintf(why, 256, "expected NAME=COMMAND or NAME(PARAMETERS)=COMMAND; got \"%.80s\"", text);
		r = -EINVAL;
	}
	if (!r) {
		signature->command = space_skip(at + 1);
		signature->schema = json_dumps(schema, JSON_COMPACT);
		r = signature->name && signature->schema ? 0 : -ENOMEM;
	}
	json_decref(schema);
	if (r)
		signature_deinit(signature);
	return r;
}

void signature_deinit(struct signature *signature)
{
	free(signature->name);
	free(signature->schema);
	json_decref(signature->defaults);
	*signature = (struct signature){.name = NULL};
}
