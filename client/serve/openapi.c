/* /openapi.json: the routes of all doors as a description that programs can read. */
#include "doors.h"
#include "schema.h"

#include "proto/paths.h"

#include <stdio.h>
#include <stdlib.h>

static json_t *reference(const char *name)
{
	char text[128];

	snprintf(text, sizeof(text), "#/components/schemas/%s", name);
	return json_pack("{s:s}", "$ref", text);
}

static json_t *content_of(const char *type, json_t *schema)
{
	return json_pack("{s:{s:o}}", type, "schema", schema);
}

static json_t *parameter_of(const char *name, json_t *schema)
{
	bool required = json_is_true(json_object_get(schema, "required"));

	(void)json_object_del(schema, "required"); /* a word of ours, which is none of a schema's */
	return json_pack("{s:s, s:s, s:b, s:O}", "name", name, "in", "query", "required", (int)required, "schema",
			 schema);
}

/* Of the path, the query and the headers. */
static json_t *parameters_of(const struct route *route)
{
	json_t *list = json_array(), *query = route->query ? json_loads(route->query, 0, NULL) : NULL, *schema;
	const char *name, *at = route->path;

	while ((at = strchr(at, '{'))) {
		size_t size = strcspn(at, "}") - 1;

		json_array_append_new(list,
				      json_pack("{s:s%, s:s, s:b, s:{s:s, s:i}}", "name", at + 1, size, "in",
						"path", "required", 1, "schema", "type", "string", "minLength", 1));
		at += size;
	}
	json_object_foreach(query, name, schema)
	{
		json_array_append_new(list, parameter_of(name, schema));
	}
	json_decref(query);
	if (route->flags & ROUTE_KEY)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:b, s:s, s:{s:s, s:i, s:i}}", "name",
						"Idempotency-Key", "in", "header", "required", 0, "description",
						"The same request with the same key is done once.", "schema",
						"type", "string", "minLength", 1, "maxLength", 255));
	return list;
}

static json_t *answer_of(const struct route *route)
{
	json_t *content = route->answer ? content_of("application/json", reference(route->answer)) : NULL;
	json_t *answer = json_pack("{s:s}", "description", route->summary);

	if (!content && (route->flags & ROUTE_BYTES) && !(route->flags & ROUTE_RAW))
		content = content_of("application/octet-stream",
				     json_pack("{s:s, s:s}", "type", "string", "format", "binary"));
	if (route->media)
		content = content_of(route->media, json_pack("{s:s}", "type", "string"));
	if (route->flags & ROUTE_EVENTS) {
		content = content ? content : json_object();
		json_object_set_new(content, "text/event-stream",
				    json_pack("{s:{s:s}}", "schema", "type", "string"));
	}
	if (content)
		json_object_set_new(answer, "content", content);
	return answer;
}

static json_t *operation_of(const struct route *route)
{
	json_t *operation = json_pack("{s:s, s:o}", "summary", route->summary, "parameters", parameters_of(route));
	json_t *responses = json_object();
	char status[16];

	snprintf(status, sizeof(status), "%u", route->status ? route->status : 200);
	json_object_set_new(responses, status, answer_of(route));
	json_object_set_new(responses, "default",
			    json_pack("{s:s, s:o}", "description", "It was not done: one sentence says why.",
				      "content", content_of("application/problem+json", reference("Problem"))));
	json_object_set_new(operation, "responses", responses);
	if (route->description)
		json_object_set_new(operation, "description", json_string(route->description));
	if (route->body)
		json_object_set_new(operation, "requestBody",
				    json_pack("{s:b, s:o}", "required",
					      (int)(json_object_get(json_object_get(schemas_all(), route->body),
								    "required") != NULL),
					      "content", content_of("application/json", reference(route->body))));
	else if ((route->flags & ROUTE_RAW) && (route->flags & ROUTE_BYTES))
		json_object_set_new(
			operation, "requestBody",
			json_pack("{s:b, s:o}", "required", 1, "content",
				  content_of("application/octet-stream",
					     json_pack("{s:s, s:s}", "type", "string", "format", "binary"))));
	if (route->flags & ROUTE_OPEN)
		json_object_set_new(operation, "security", json_array());
	return operation;
}

static void route_add(json_t *paths, const struct route *route)
{
	json_t *path = json_object_get(paths, route->path);
	char method[16];
	size_t i;

	if (route->flags & ROUTE_HIDDEN)
		return;
	if (!path) {
		path = json_object();
		json_object_set_new(paths, route->path, path);
	}
	for (i = 0; i < sizeof(method) - 1 && route->method[i]; i++)
		method[i] = (char)(route->method[i] | 0x20);
	method[i] = '\0';
	json_object_set_new(path, method, operation_of(route));
}

json_t *openapi_make(const struct server *server)
{
	json_t *paths = json_object();
	json_t *document;

	for (const struct door *const *door = server->options->doors; *door; door++)
		for (size_t i = 0; i < (*door)->n_routes; i++)
			route_add(paths, &(*door)->routes[i]);
	document = json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:{s:O, s:{s:{s:s, s:s}}}}", "openapi", "3.1.0", "info",
			     "title", "Lair", "version", LAIR_VERSION, "description",
			     "Live, caged Python sessions over HTTP.", "paths", paths, "components", "schemas",
			     schemas_all(), "securitySchemes", "token", "type", "http", "scheme", "bearer");
	if (!server->open)
		json_object_set_new(document, "security", json_pack("[{s:[]}]", "token"));
	return document;
}
