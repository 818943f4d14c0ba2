/* The tools: descriptions, checks and calls are made of one table, and of one document that models are shown. */
#pragma once

#include "engine.h"

struct tool {
	const char *name;
	void (*run)(struct request *request);
};

/* In the order of lists; the last has no name. */
extern const struct tool tools[];

/* tools.json, read once: parameters and properties by name, groups of properties, and tools; borrowed. */
const json_t *tools_document(void);
/* Its description of @tool; borrowed. */
const json_t *tool_description(const struct tool *tool);

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
