/* Results of tools, as a model gets them. */
#pragma once

#include "engine.h"
#include "excerpt.h"
#include "shown.h"

/* A result with @structured, which is taken over, as it is and as text. Its `ok` says whether the result is an
 * error. New, as are all results here. */
json_t *result_new(json_t *structured);
/* The result of a tool that runs no cell: {"ok": true, "session_id": ...}. The caller adds the rest. */
json_t *result_done(const struct request *request);
/* The daemon has refused. */
json_t *result_failure(const struct request *request, int error, const char *sentence);
/* The tool has refused. */
json_t *result_refused(const struct request *request, const char *name, const char *sentence);

/* The session's end or rollback as @told has it, and its notes in words. Other answers than results of
 * cells give a result with those fields. */
void result_add(json_t *structured, const struct lair_result *told);
/* The same of a session that was opened, and `new` if it did not exist. */
void result_add_opened(json_t *structured, const struct request *request, const struct lair_session *session);

/* The output that is collected from a cell while it runs. */
struct seen {
	struct excerpt out, err;
	struct shown shown;
	json_t *handle;		   /* for what the result leaves out; owned, or NULL */
	struct lair_point printed; /* how far its output has come, since the cell began */
	bool once;		   /* its session ends with it, and is not told of */
};

/* The result of a cell that still runs after so many seconds: its output until now. @handle is taken over.
 * @asking: its calls that wait for approval, or NULL; @key: its key. */
json_t *result_running(const struct request *request, const struct seen *seen, json_t *handle, json_t *asking,
		       const char *key, double seconds);

/* The result of a cell that has ended. */
json_t *result_cell(const struct request *request, const struct lair_result *cell, const struct seen *seen);
