/* JSON-RPC 2.0, as MCP has it: one object is one line, ids are strings or integers, there are no batches. The
 * server of MCP and its client both ask and answer. */
#pragma once

#include "proto/list.h"

#include "lair.h"

#include <jansson.h>

enum {
	RPC_PARSE = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_NO_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_NOT_FOUND = -32002, /* MCP before 2026-07-28: there is no such resource */
	RPC_MISMATCH = -32020,	/* MCP over HTTP: the headers are not what the message says */
	RPC_VERSION = -32022,	/* MCP: the request is of a version that this server does not speak */
};

/* Versions of MCP: of the stateless era, and of the handshake, the newest first. */
#define MCP_MODERN "2026-07-28"
extern const char *const mcp_legacy[];
/* Which of the latter that is; -1: none. @version may be NULL. */
int mcp_legacy_find(const char *version);
/* Our name and version, as either end of a conversation; new. */
json_t *mcp_info(void);
/* Members of _meta. */
#define MCP_META(name) "io.modelcontextprotocol/" name

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc {
	json_t *document; /* owned */
	enum rpc_kind kind;
	json_t *id; /* of a request: owned, a string or an integer; else NULL */
	const char *method;
	json_t *params; /* borrowed; an object, or NULL */
};

/* Read a line, or the body of a request; @strict: no object has a key twice. Returns NULL, or the error to answer
 * with; in either case rpc_deinit @rpc. */
json_t *rpc_read(struct rpc *rpc, struct lair_text text, bool strict);
/* Whether there is nothing in it to read. */
bool rpc_blank(struct lair_text line);
void rpc_deinit(struct rpc *rpc);

/* Documents to send; new. @id is borrowed, but by rpc_request; NULL if no id could be read. @data, @result and
 * @params are taken over; @data may be NULL. */
json_t *rpc_error(json_t *id, int code, const char *message, json_t *data);
json_t *rpc_result(json_t *id, json_t *result);
json_t *rpc_request(json_t *id, const char *method, json_t *params);
json_t *rpc_notification(const char *method, json_t *params);

/* ---- requests to the other end ---- */

/* One that is not answered yet, embedded in its owner. */
struct rpc_asked {
	struct list node;
	json_int_t id;
};

struct rpc_asker {
	struct list asked;
	json_int_t last_id;
};

void rpc_asker_init(struct rpc_asker *asker);
/* The document of a new request; @params is taken over. */
json_t *rpc_ask(struct rpc_asker *asker, struct rpc_asked *asked, const char *method, json_t *params);
/* The request of that id, which is answered now; NULL: there is none. */
struct rpc_asked *rpc_answered(struct rpc_asker *asker, const json_t *id);
/* Nobody waits for its answer any more. Returns the notification of that. */
json_t *rpc_withdraw(struct rpc_asked *asked, const char *reason);

/* _meta of params or of a result, which is made if it is not there; borrowed. */
json_t *rpc_meta(json_t *object);

/* The text of @value; NULL if it is no text, or contains a NUL. Borrowed. */
const char *json_text_value(const json_t *value);

/* @value as an id or a token: a string that is not too long, or an integer. New, or NULL. */
json_t *rpc_id(json_t *value);
