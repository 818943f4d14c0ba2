/* Between cells and servers: offers from what servers have listed, and for each call of a cell a call of a server.
 */
#include "offered.h"

#include "base/json.h"

struct out {
	struct out *next;
	struct offered *offered;
	const void *cell;
	uint64_t number;
	struct lair_calling *calling;
	struct servers_call *call;
};

struct offered {
	struct servers *servers;
	json_t *listed; /* has the texts of the functions, except schemas */
	struct lair_function *functions;
	size_t n;
	struct out *first;
};

/* ---- what there is ---- */

static void functions_free(struct offered *offered)
{
	for (size_t i = 0; i < offered->n; i++) {
		free((char *)offered->functions[i].schema);
		free((char *)offered->functions[i].returns);
	}
	freep(&offered->functions);
	json_decref(offered->listed);
	offered->listed = NULL;
	offered->n = 0;
}

static const char *text_of(const json_t *function, const char *key)
{
	return json_string_value(json_object_get(function, key));
}

static const char *schema_of(const json_t *function, const char *key)
{
	const json_t *schema = json_object_get(function, key);

	return schema ? json_compact(schema) : NULL;
}

const struct lair_function *offered_functions(struct offered *offered, size_t *np)
{
	json_t *function;
	size_t i;

	functions_free(offered);
	offered->listed = offered->servers ? servers_functions(offered->servers) : json_array();
	offered->functions = calloc(json_array_size(offered->listed) + 1, sizeof(*offered->functions));
	json_array_foreach(offered->listed, i, function)
	{
		if (!offered->functions)
			break;
		offered->functions[offered->n++] = (struct lair_function){
			.name = text_of(function, "name"),
			.schema = schema_of(function, "schema"),
			.returns = schema_of(function, "returns"),
			.doc = text_of(function, "doc"),
			.caution = json_is_true(json_object_get(function, "caution")),
			.server = text_of(function, "server"),
			.tool = text_of(function, "tool"),
		};
	}
	*np = offered->n;
	return offered->functions;
}

/* ---- calls ---- */

static void out_free(struct out *out)
{
	struct out **at = &out->offered->first;

	while (*at != out)
		at = &(*at)->next;
	*at = out->next;
	lair_calling_free(out->calling);
	free(out);
}

static void raise_error(struct lair_calling *calling, const char *error, const char *text)
{
	/* A call that is freed unanswered gets an error from liblair. */
	if (lair_raise(calling, error, text))
		lair_calling_free(calling);
}

static void on_done(json_t *result, const char *error, const char *text, void *userdata)
{
	struct out *out = userdata;
	_cleanup_(freep) char *value = result ? json_compact(result) : NULL;
	struct lair_calling *calling = steal_ptr(&out->calling);

	if (!result)
		raise_error(calling, error, text);
	else if (!value || lair_return(calling, lair_text(value)))
		raise_error(calling, "ValueError", "the result of the server cannot be sent to a cell");
	out_free(out);
}

void offered_call(struct offered *offered, const void *cell, struct lair_calling *calling)
{
	struct lair_text name = lair_calling_function(calling), text = lair_calling_arguments(calling);
	json_t *arguments = text.data ? json_loadb(text.data, text.size, JSON_ALLOW_NUL, NULL) : NULL;
	struct out *out = calloc(1, sizeof(*out));
	int r = out && json_is_object(arguments) ? 0 : -ENOMEM;

	if (!r)
		r = servers_call(offered->servers, &out->call, name.data, json_incref(arguments), on_done, NULL,
				 out);
	json_decref(arguments);
	if (r) {
		free(out);
		raise_error(calling, "FunctionError",
			    r == -ENOENT ? "the server does not have that tool any more"
					 : "these arguments cannot be sent");
		return;
	}
	*out = (struct out){offered->first, offered, cell, lair_calling_number(calling), calling, out->call};
	offered->first = out;
}

static void out_cancel(struct out *out)
{
	servers_cancel(out->call);
	out_free(out);
}

void offered_cancel(struct offered *offered, const void *cell, uint64_t number)
{
	struct out *next;

	for (struct out *out = offered->first; out; out = next) {
		next = out->next;
		if (out->cell == cell && out->number == number)
			out_cancel(out);
	}
}

void offered_end(struct offered *offered, const void *cell)
{
	struct out *next;

	for (struct out *out = offered->first; out; out = next) {
		next = out->next;
		if (out->cell == cell)
			out_cancel(out);
	}
}

int offered_new(struct offered **offeredp, struct servers *servers)
{
	*offeredp = calloc(1, sizeof(**offeredp));
	if (!*offeredp)
		return -ENOMEM;
	(*offeredp)->servers = servers;
	return 0;
}

struct offered *offered_free(struct offered *offered)
{
	if (!offered)
		return NULL;
	while (offered->first)
		out_cancel(offered->first);
	functions_free(offered);
	free(offered);
	return NULL;
}
