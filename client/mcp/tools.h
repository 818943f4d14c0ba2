/* The tools: one table, from which descriptions, checks and calls are made. */
#pragma once

#include "engine.h"

#define TOOL_PARAMETERS_MAX 4
#define TOOL_PROPERTIES_MAX 29

enum tool_hint { HINT_READ_ONLY = 1, HINT_DESTRUCTIVE = 2, HINT_IDEMPOTENT = 4, HINT_HARMLESS = 8 };

struct parameter {
	const char *name, *type, *description;
	bool required;
	bool zero; /* 0 is allowed */
};

enum kind { KIND_TEXT, KIND_COUNT, KIND_FLAG, KIND_TEXTS, KIND_COUNTS, KIND_OBJECT, KIND_OBJECTS };

/* A member that a result may have. Results have no other members, and only `ok` is in every one. */
struct property {
	const char *name;
	enum kind kind;
	const char *description;	/* NULL: the name says enough */
	const struct property *members; /* of an object, or of each object in a list; the last one has no name */
	const char *const *values;	/* of a text: its only values, ended by NULL; or NULL */
};

struct tool {
	const char *name, *title, *description;
	unsigned hints;
	bool full; /* not everybody needs this tool */
	const struct parameter *parameters[TOOL_PARAMETERS_MAX + 1];
	const struct property *properties[TOOL_PROPERTIES_MAX + 1];
	void (*run)(struct request *request);
};

/* Loops over the parameters or properties of a tool: up to NULL, or to the end of the array. */
#define tool_for_each(at, list) for ((at) = (list); (at) < (list) + ARRAY_SIZE(list) && *(at); (at)++)

/* In the order of lists; the last has no name. */
extern const struct tool tools[];

/* The methods. */
void tools_list(struct request *request);
void tools_call(struct request *request);

/* ---- arguments, after they were checked ---- */

/* Borrowed; NULL if the argument is not given. */
const char *argument_text(const struct request *request, const char *name);
/* 0 if the argument is not given. */
double argument_number(const struct request *request, const char *name);
/* The session that the call means. */
const char *argument_session(const struct request *request);
/* Whether @id names a session of another user, which a model does not get. */
bool session_is_anothers(const struct engine *engine, const char *id);

/* Whether it runs code in the session that the call means. */
bool tool_runs_in_session(const struct tool *tool);

/* ---- what they do: run.c, sessions.c, questions.c, copy.c ---- */

void run_once(struct request *request);
void run_in_session(struct request *request);
void run_rest(struct request *request);
void session_install(struct request *request);
void session_start(struct request *request);
void session_reset(struct request *request);
void session_shutdown(struct request *request);
void session_undo(struct request *request);
void session_branch(struct request *request);
void session_files(struct request *request);
void session_diff(struct request *request);
void session_vars(struct request *request);
void check_syntax(struct request *request);
void copy_to_sandbox(struct request *request);
