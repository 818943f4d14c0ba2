/* The tools: one table, from which descriptions, checks and calls are made. */
#pragma once

#include "server.h"

#define TOOL_PARAMETERS_MAX 4
#define TOOL_PROPERTIES_MAX 26

enum tool_hint { HINT_READ_ONLY = 1, HINT_DESTRUCTIVE = 2, HINT_IDEMPOTENT = 4, HINT_HARMLESS = 8 };

struct parameter {
	const char *name, *type, *description;
	bool required;
	bool zero; /* 0 is a number that it may have */
};

enum kind { KIND_TEXT, KIND_COUNT, KIND_FLAG, KIND_TEXTS, KIND_COUNTS, KIND_OBJECT, KIND_OBJECTS };

/* What a result may have; it has no others. Only `ok` is in every one. */
struct property {
	const char *name;
	enum kind kind;
	const char *description;	/* NULL: the name says it */
	const struct property *members; /* of an object, or of each; the last has no name */
	const char *const *values;	/* of a text: these and no others, the last is NULL; or NULL */
};

struct tool {
	const char *name, *title, *description;
	unsigned hints;
	bool full; /* one of those that not everybody needs */
	const struct parameter *parameters[TOOL_PARAMETERS_MAX + 1];
	const struct property *properties[TOOL_PROPERTIES_MAX + 1];
	void (*run)(struct request *request);
};

/* Over the parameters or properties of one: up to NULL, or all that there is room for. */
#define tool_for_each(at, list) for ((at) = (list); (at) < (list) + ARRAY_SIZE(list) && *(at); (at)++)

/* In the order in which they are listed; the last has no name. */
extern const struct tool tools[];

/* The methods. */
void tools_list(struct request *request);
void tools_call(struct request *request);

/* ---- arguments, after they were checked ---- */

/* Borrowed; NULL if it is not given. */
const char *argument_text(const struct request *request, const char *name);
/* 0 if it is not given. */
double argument_number(const struct request *request, const char *name);
/* The session that is meant. */
const char *argument_session(const struct request *request);
/* Whether a model means another user's by it, which is none of its sessions. */
bool session_is_anothers(const struct server *server, const char *id);

/* ---- what they do: run.c, sessions.c, questions.c, copy.c ---- */

void run_once(struct request *request);
void run_in_session(struct request *request);
void run_rest(struct request *request);
void session_start(struct request *request);
void session_reset(struct request *request);
void session_shutdown(struct request *request);
void session_undo(struct request *request);
void session_branch(struct request *request);
void session_files(struct request *request);
void session_vars(struct request *request);
void check_syntax(struct request *request);
void copy_to_sandbox(struct request *request);
