/* The options of a cell that a client may give, one row each: liblair encodes them by this table, and each
 * interface takes those that it offers. */
#pragma once

#include "lair.h"

#include <jansson.h>
#include <msgpack.h>

struct exec_request;

enum option_type {
	OPTION_FLAG,	 /* bool */
	OPTION_SECONDS,	 /* double */
	OPTION_NUMBER,	 /* uint64_t */
	OPTION_TEXT,	 /* const char * */
	OPTION_WORDS,	 /* const char *const *, ended by NULL */
	OPTION_SETTINGS, /* the same, each NAME=value */
};

/* The interfaces that offer an option: lair exec, lair repl, HTTP, the tools of MCP. */
enum { DOOR_EXEC = 1, DOOR_PROMPT = 2, DOOR_HTTP = 4, DOOR_TOOLS = 8 };

struct exec_option {
	const char *name; /* in the protocol, and in JSON */
	enum option_type type;
	size_t place, field; /* in struct lair_exec, in struct exec_request */
	unsigned doors;
	char letter;	      /* of its flag */
	const char *flag;     /* its flag; NULL: @name */
	const char *argument; /* of the flag; NULL: it has none, and a text becomes the name of the flag */
	const char *tool;     /* its name for the tools of MCP; NULL: @name */
	const char *choices[3];
	const char *help;
};

#define EXEC_OPTIONS_MAX 32
extern const struct exec_option exec_options[];
extern const size_t n_exec_options;

/* An array of str, of @strings, ended by NULL; nothing if that is NULL. Returns 0, -EILSEQ or -ENOMEM. */
int strings_put(msgpack_sbuffer *buffer, const char *const *strings);
/* Set the options of @request. Those that are lists are in @lists, empty buffers that the caller destroys. Returns
 * 0, -EILSEQ or -ENOMEM. */
int exec_options_put(struct exec_request *request, msgpack_sbuffer lists[static EXEC_OPTIONS_MAX],
		     const struct lair_exec *exec);
/* Take the options that @door offers from @object, whose types have been checked. Those that it lacks stay as they
 * are; lists are the caller's to take. */
void exec_options_read(struct lair_exec *exec, const json_t *object, unsigned door);
/* Schemas of those that @door offers, by name, into @properties. */
void exec_options_describe(json_t *properties, unsigned door);
