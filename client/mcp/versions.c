/* The eras differ in how they begin and in the wrapping of their results; all of that is here. Of the handshake
 * only the client's old version is remembered. */
#include "versions.h"

#include "functions.h"
#include "instructions.h"

#define DISCOVER_TTL_MS 3600000

static const char *const modern[] = {MCP_MODERN};
/* The last of them that knows links to resources. */
enum { LEGACY_LINKS = 1 };

static json_t *array_of(const char *const *texts, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, json_string(texts[i]));
	return array;
}

static json_t *capabilities(void)
{
	return json_pack("{s:{}, s:{}, s:{}}", "tools", "resources", "prompts");
}

/* ---- the stateless era ---- */

static json_t *meta_get(const json_t *params, const char *key)
{
	return json_object_get(json_object_get(params, "_meta"), key);
}

bool versions_elicits(const struct engine *engine, const json_t *params)
{
	return versions_modern(params) ? functions_elicits(meta_get(params, MCP_META("clientCapabilities")))
				       : engine->elicits;
}

bool versions_modern(const json_t *params)
{
	return meta_get(params, MCP_META("protocolVersion")) != NULL;
}

int versions_check(const json_t *params, const char **messagep, json_t **datap)
{
	json_t *version = meta_get(params, MCP_META("protocolVersion"));

	*datap = NULL;
	if (!json_text_value(version)) {
		*messagep = "_meta: " MCP_META("protocolVersion") " must be a string";
		return RPC_INVALID_PARAMS;
	}
	for (size_t i = 0; i < ARRAY_SIZE(modern); i++) {
		if (strcmp(json_string_value(version), modern[i]) != 0)
			continue;
		*messagep = "_meta: " MCP_META("clientCapabilities") " must be an object";
		return json_is_object(meta_get(params, MCP_META("clientCapabilities"))) ? 0 : RPC_INVALID_PARAMS;
	}
	*messagep = "Unsupported protocol version";
	*datap = json_pack("{s:o, s:O}", "supported", array_of(modern, ARRAY_SIZE(modern)), "requested", version);
	return RPC_VERSION;
}

void versions_complete(json_t *result)
{
	if (!json_object_get(result, "resultType"))
		json_object_set_new(result, "resultType", json_string("complete"));
	json_object_set_new(rpc_meta(result), MCP_META("serverInfo"), mcp_info());
}

void versions_cacheable(const struct request *request, json_t *result, int ttl_ms, bool public)
{
	if (!request->modern)
		return;
	json_object_set_new(result, "ttlMs", json_integer(ttl_ms));
	json_object_set_new(result, "cacheScope", json_string(public ? "public" : "private"));
}

/* Go on with @then. If it is wanted, a cell first finds out what there is in a session; otherwise a daemon that
 * runs already tells its profiles. If that fails, @then gets no call. */
static void find_out(struct request *request, step *then)
{
	const struct mcp_options *options = &request->engine->options;
	struct lair_call *call = NULL;
	const char *sentence;
	struct lair *lair;

	if (engine_connect(request->engine, &lair, options->instructions, &sentence)) {
		then(request, NULL);
		return;
	}
	request->tolerant = true;
	request->runs = options->instructions;
	request_wait(request,
		     options->instructions ? instructions_ask(lair, &call, options->profile)
					   : lair_stats(lair, &call),
		     &call, then);
}

static json_t *instructions_of(const struct request *request, const struct lair_call *call)
{
	const struct lair_result *result = call && !lair_outcome(call) ? lair_result(call) : NULL;
	json_t *found = result ? instructions_json(result)
			       : instructions_general(call && !lair_outcome(call) ? lair_counters(call) : NULL,
						      request->engine->options.profile);
	json_t *more = functions_instructions(request->engine);
	json_t *all = json_sprintf("%s%s", json_string_value(found), json_string_value(more));

	json_decref(more);
	if (!all)
		return found;
	json_decref(found);
	return all;
}

static void discovered(struct request *request, struct lair_call *call)
{
	json_t *result = json_pack("{s:o, s:o, s:o}", "supportedVersions", array_of(modern, ARRAY_SIZE(modern)),
				   "capabilities", capabilities(), "instructions", instructions_of(request, call));

	versions_cacheable(request, result, DISCOVER_TTL_MS, true);
	request_reply(request, result);
}

void versions_discover(struct request *request)
{
	find_out(request, discovered);
}

/* ---- the handshake ---- */

bool versions_links(const struct request *request)
{
	return request->modern || request->engine->legacy <= LEGACY_LINKS;
}

static void initialized(struct request *request, struct lair_call *call)
{
	request_reply(request, json_pack("{s:s, s:o, s:o, s:o}", "protocolVersion",
					 mcp_legacy[request->engine->legacy], "capabilities", capabilities(),
					 "serverInfo", mcp_info(), "instructions", instructions_of(request, call)));
}

void versions_initialize(struct request *request)
{
	const char *wanted = json_text_value(json_object_get(request->arguments, "protocolVersion"));
	if (!wanted) {
		request_refuse(request, RPC_INVALID_PARAMS, "protocolVersion must be a string", NULL);
		return;
	}
	/* To a version that is not known the newest one is the answer. */
	request->engine->legacy = (unsigned)MAX(mcp_legacy_find(wanted), 0);
	request->engine->elicits = functions_elicits(json_object_get(request->arguments, "capabilities"));
	find_out(request, initialized);
}
