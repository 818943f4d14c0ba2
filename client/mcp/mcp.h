/* lair mcp: sessions as tools of the Model Context Protocol. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <jansson.h>

struct mcp_options {
	struct lair_options lair;
	const char *session; /* of calls that name none; NULL: one that only this process uses */
	const char *profile; /* of sessions that have to be opened; NULL: the default one */
	double timeout;	     /* of code, in seconds, if the call names none; 0: the profile's */
	double patience; /* of the client, in seconds: a call that takes longer is answered then; 0: MCP_PATIENCE */
	bool instructions; /* tell what there is in a session, too */
	bool full;	   /* all tools, not only those that everybody needs */
};

/* Before those clients give up that have 60 seconds, which are most. */
#define MCP_PATIENCE 50.0

/* Serve until @in ends or nobody reads @out. Sessions are nobody's but the daemon's: they stay. Returns 0 or
 * -errno. */
int mcp_serve(const struct mcp_options *options, int in, int out);

enum mcp_format { MCP_OPENAI, MCP_ANTHROPIC, MCP_TOOLS };

/* The tools, as an API wants to have them described; new. */
json_t *mcp_tools(enum mcp_format format, bool full);
