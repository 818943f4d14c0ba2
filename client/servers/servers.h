/* MCP servers as providers of functions: their tools are listed, and calls are passed to them. This is a client of
 * the Model Context Protocol, over stdio and streamable HTTP. A server is started when its tools are asked for,
 * stays up, is started again at the next call if it has died, and ends with this process. Messages of servers are
 * not trusted. */
#pragma once

#include "proto/event.h"

#include <jansson.h>

struct servers;
struct servers_call;

/* Never called from within a function of the caller's, only from the loop. */
struct servers_options {
	struct event_loop *loop;
	const char *const *allow; /* patterns of functions that need no approval, ended by NULL; or NULL */
	void (*on_functions)(void *userdata);		      /* the functions have changed */
	void (*on_failure)(const char *text, void *userdata); /* a server is not there, or not all of it */
	void *userdata;
};

/* Read @path, which has {"mcpServers": {...}}. Nothing is started. Returns 0; or -errno, with a sentence in *whyp,
 * the caller's to free. @options are copied, the data that they point to is borrowed. */
int servers_new(struct servers **serversp, const char *path, const struct servers_options *options, char **whyp);
/* Ends the servers, and runs the loop until they have ended, for a moment at the longest. Calls that are out are
 * forgotten. */
struct servers *servers_free(struct servers *servers);

/* Names of the servers and what the file says of them, as a list in words; the caller's to free. */
char *servers_names(const struct servers *servers);

/* Start all that do not run. */
void servers_start(struct servers *servers);
/* Whether each server has listed its tools, or has failed. */
bool servers_settled(const struct servers *servers);
/* Start all, and run the loop until they are settled and the owner knows the failures. Returns 0 or -errno. */
int servers_wait(struct servers *servers);
/* Run @fn whenever something has happened, at the latest when the servers are settled. */
void servers_on_turn(struct servers *servers, void (*fn)(void *userdata), void *userdata);

/* What there is to call: an array of {name, doc, schema, returns?, caution?, server, tool}. New. */
json_t *servers_functions(const struct servers *servers);
/* Which servers are not there, or not with all of their functions, and why: {name: sentence}. New. */
json_t *servers_failed(const struct servers *servers);

/* A call has ended: with the result of MCP, which is borrowed; or with the name of an error and a sentence. The
 * call is freed afterwards. */
typedef void servers_done(json_t *result, const char *error, const char *text, void *userdata);
/* Progress of the call. @params: progress, total?, message?; borrowed. */
typedef void servers_progress(json_t *params, void *userdata);

/* Call a function. @arguments is an object, and taken over. Returns 0, -ENOENT if there is no such function, or
 * -ENOMEM; *callp is valid until @done, which is called later. @progress may be NULL. */
int servers_call(struct servers *servers, struct servers_call **callp, const char *function, json_t *arguments,
		 servers_done *done, servers_progress *progress, void *userdata);
/* Nobody waits for it any more: the server is told so, and @done is not called. */
void servers_cancel(struct servers_call *call);
