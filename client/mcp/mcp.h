/* lair mcp: sessions as tools of the Model Context Protocol. */
#pragma once

#include "proto/event.h"

#include "lair.h"

#include <jansson.h>

struct servers;

/* Of a server for many: one-shots are sessions with names, which it counts. */
struct mcp_once {
	const char *prefix;				       /* how the names begin */
	void (*on_named)(void *userdata, const char *session); /* the session will be opened */
	void (*end)(void *userdata, const char *session);      /* end it */
	void *userdata;
};

struct mcp_options {
	struct event_loop *loop;
	struct lair_options lair;
	const char *session;	     /* for calls that name none; NULL: one that only this process uses */
	const struct mcp_once *once; /* NULL: one-shots are sessions without names */
	const char *profile;	     /* for sessions that have to be opened; NULL: the default one */
	double timeout;		     /* for code, in seconds, if the call names none; 0: the profile's */
	double patience;   /* of the client, in seconds: a call that takes longer is answered; 0: MCP_PATIENCE */
	bool instructions; /* also tell what there is in a session */
	bool full;	   /* all tools, not only those that everybody needs */
	struct servers *servers; /* whose tools are functions of cells; borrowed, or NULL */
};

/* Most clients give up after 60 seconds, so this is less. */
#define MCP_PATIENCE 50.0

/* Serve until @in ends or nobody reads @out. Sessions belong to the daemon, so they stay. Returns 0 or -errno. */
int mcp_serve(const struct mcp_options *options, int in, int out);

enum mcp_format { MCP_OPENAI, MCP_ANTHROPIC, MCP_TOOLS };

/* The descriptions of the tools, in the form that an API wants; new. */
json_t *mcp_tools(enum mcp_format format, bool full);
