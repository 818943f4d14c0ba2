/* lair mcp: sessions as tools of the Model Context Protocol. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <jansson.h>

struct mcp_options {
	struct lair_options lair;
	const char *session; /* of calls that name none; NULL: MCP_SESSION */
	const char *profile; /* of sessions that have to be opened; NULL: the default one */
	double timeout;	     /* of code, in seconds, if the call names none; 0: the profile's */
	bool full;	     /* all tools, not only those that everybody needs */
};

#define MCP_SESSION "default"

/* Serve until @in ends or nobody reads @out. Sessions are nobody's but the daemon's: they stay. Returns 0 or
 * -errno. */
int mcp_serve(const struct mcp_options *options, int in, int out);

enum mcp_format { MCP_OPENAI, MCP_ANTHROPIC, MCP_TOOLS };

/* The tools, as an API wants to have them described; new. */
json_t *mcp_tools(enum mcp_format format, bool full);
