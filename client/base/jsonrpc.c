/* Lines to messages. A line is either a message in the form that the rest of the server expects, or an error
 * about it. */
#include "jsonrpc.h"

#include "json.h"

#include <math.h>

#define ID_SIZE_MAX 1024
/* Up to this number a double holds every integer. */
#define INTEGER_MAX 9007199254740992.0

/* ---- writing ---- */

json_t *rpc_error(json_t *id, int code, const char *message, json_t *data)
{
	json_t *error = json_pack("{s:i, s:o}", "code", code, "message", json_text(lair_text(message)));

	if (data)
		json_object_set_new(error, "data", data);
	return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id ? id : json_null(), "error", error);
}

json_t *rpc_result(json_t *id, json_t *result)
{
	return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result);
}

json_t *rpc_request(json_t *id, const char *method, json_t *params)
{
	return json_pack("{s:s, s:o, s:s, s:o}", "jsonrpc", "2.0", "id", id, "method", method, "params", params);
}

json_t *rpc_notification(const char *method, json_t *params)
{
	return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
}

/* ---- asking ---- */

void rpc_asker_init(struct rpc_asker *asker)
{
	list_init(&asker->asked);
}

json_t *rpc_ask(struct rpc_asker *asker, struct rpc_asked *asked, const char *method, json_t *params)
{
	list_init(&asked->node);
	list_append(&asker->asked, &asked->node);
	asked->id = ++asker->last_id;
	return rpc_request(json_integer(asked->id), method, params);
}

struct rpc_asked *rpc_answered(struct rpc_asker *asker, const json_t *id)
{
	struct rpc_asked *asked;

	list_for_each (asked, &asker->asked, node) {
		if (json_is_integer(id) && asked->id == json_integer_value(id)) {
			list_remove(&asked->node);
			return asked;
		}
	}
	return NULL;
}

json_t *rpc_withdraw(struct rpc_asked *asked, const char *reason)
{
	list_remove(&asked->node);
	return rpc_notification("notifications/cancelled",
				json_pack("{s:I, s:s}", "requestId", asked->id, "reason", reason));
}

/* ---- MCP ---- */

const char *const mcp_legacy[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

int mcp_legacy_find(const char *version)
{
	for (size_t i = 0; version && i < ARRAY_SIZE(mcp_legacy); i++)
		if (strcmp(version, mcp_legacy[i]) == 0)
			return (int)i;
	return -1;
}

json_t *mcp_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "lair", "title", "Lair", "version", LAIR_VERSION);
}

json_t *rpc_meta(json_t *object)
{
	json_t *meta = json_object_get(object, "_meta");

	if (!meta)
		json_object_set_new(object, "_meta", meta = json_object());
	return meta;
}

/* ---- reading ---- */

const char *json_text_value(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

json_t *rpc_id(json_t *value)
{
	if (json_is_string(value) && json_string_length(value) <= ID_SIZE_MAX)
		return json_incref(value);
	if (json_is_integer(value))
		return json_incref(value);
	/* 1.0; or an integer in a message where another integer was too large for the library. */
	if (json_is_real(value) && trunc(json_real_value(value)) == json_real_value(value) &&
	    fabs(json_real_value(value)) <= INTEGER_MAX)
		return json_integer((json_int_t)json_real_value(value));
	return NULL;
}

static json_t *document_load(struct lair_text line, size_t flags, json_error_t *error)
{
	json_t *document = json_loadb(line.data, line.size, JSON_ALLOW_NUL | JSON_DECODE_ANY | flags, error);

	/* JSON's integers may have any size, the library's have 64 bits. */
	if (!document && json_error_code(error) == json_error_numeric_overflow)
		document = json_loadb(line.data, line.size,
				      JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | flags, error);
	return document;
}

/* Whether the member is there, of whatever type. */
static bool has(const struct rpc *rpc, const char *key)
{
	return json_object_get(rpc->document, key) != NULL;
}

static json_t *message_check(struct rpc *rpc)
{
	const char *version = json_string_value(json_object_get(rpc->document, "jsonrpc"));
	json_t *method = json_object_get(rpc->document, "method");

	rpc->id = rpc_id(json_object_get(rpc->document, "id"));
	if (!version || strcmp(version, "2.0") != 0)
		return rpc_error(rpc->id, RPC_INVALID_REQUEST, "jsonrpc must be \"2.0\"", NULL);
	if (!method && (has(rpc, "result") || has(rpc, "error"))) {
		rpc->kind = RPC_RESPONSE;
		return NULL;
	}
	if (!json_text_value(method))
		return rpc_error(rpc->id, RPC_INVALID_REQUEST, "method must be a string", NULL);
	if (has(rpc, "id") && !rpc->id)
		return rpc_error(NULL, RPC_INVALID_REQUEST,
				 "id must be a string of at most 1024 bytes or an integer of at most 64 bits",
				 NULL);
	rpc->kind = has(rpc, "id") ? RPC_REQUEST : RPC_NOTIFICATION;
	rpc->method = json_text_value(method);
	rpc->params = json_object_get(rpc->document, "params");
	if (rpc->params && !json_is_object(rpc->params) && rpc->kind == RPC_REQUEST)
		return rpc_error(rpc->id, RPC_INVALID_PARAMS, "params must be an object", NULL);
	if (!json_is_object(rpc->params))
		rpc->params = NULL;
	return NULL;
}

bool rpc_blank(struct lair_text line)
{
	for (size_t i = 0; i < line.size; i++)
		if (!strchr(" \t\r", line.data[i]) || !line.data[i])
			return false;
	return true;
}

json_t *rpc_read(struct rpc *rpc, struct lair_text text, bool strict)
{
	json_error_t error;

	*rpc = (struct rpc){.document = document_load(text, strict ? JSON_REJECT_DUPLICATES : 0, &error)};
	if (!rpc->document && json_error_code(&error) == json_error_duplicate_key)
		return rpc_error(NULL, RPC_INVALID_REQUEST, "an object has a key twice", NULL);
	if (!rpc->document && json_error_code(&error) == json_error_numeric_overflow)
		return rpc_error(NULL, RPC_INVALID_REQUEST, "a number is too large", NULL);
	if (!rpc->document)
		return rpc_error(NULL, RPC_PARSE, "this is not JSON in UTF-8", NULL);
	if (json_is_array(rpc->document))
		return rpc_error(NULL, RPC_INVALID_REQUEST, "batches are not supported: one object a message",
				 NULL);
	if (!json_is_object(rpc->document))
		return rpc_error(NULL, RPC_INVALID_REQUEST, "a message is a JSON object", NULL);
	return message_check(rpc);
}

void rpc_deinit(struct rpc *rpc)
{
	json_decref(rpc->document);
	json_decref(rpc->id);
	*rpc = (struct rpc){.document = NULL};
}
