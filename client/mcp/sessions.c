/* The tools about a session as a whole: one question each. */
#include "tools.h"

#include "json.h"
#include "result.h"

#include <stdio.h>

static void on_opened(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request);

	json_object_set_new(structured, "new", json_false());
	result_add_opened(structured, request, lair_session(call));
	request_reply(request, result_new(structured));
}

static void on_reset(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request);

	json_object_set_new(structured, "state", json_string("reset"));
	result_add_effects(structured, lair_reset_effects(call));
	request_reply(request, result_new(structured));
}

static void on_ended(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request);

	(void)call;
	json_object_set_new(structured, "state", json_string("ended"));
	request_reply(request, result_new(structured));
}

static void on_branched(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request);

	json_object_set_new(structured, "session_id", json_text(lair_session(call)->session));
	result_add_effects(structured, &lair_session(call)->effects);
	request_reply(request, result_new(structured));
}

static void on_undone(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request);

	json_object_set_new(structured, "at_cell", json_integer((json_int_t)lair_state(call)->cell));
	result_add_back(structured, &lair_state(call)->back);
	result_add_effects(structured, &lair_state(call)->effects);
	request_reply(request, result_new(structured));
}

static void on_files(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request), *entries = json_array();
	struct lair_file file;
	size_t cursor = 0;

	while (lair_next_file(lair_listing(call)->files, &cursor, &file))
		json_array_append_new(entries, json_pack("{s:o, s:o, s:I}", "name", json_text(file.name), "kind",
							 json_text(file.kind), "size", (json_int_t)file.size));
	json_object_set_new(structured, "entries", entries);
	if (lair_listing(call)->next)
		json_object_set_new(structured, "more", json_true());
	request_reply(request, result_new(structured));
}

void session_start(struct request *request)
{
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;

	if (lair)
		request_wait(request,
			     lair_open(lair, &call, argument_session(request), request->server->options->profile),
			     &call, on_opened);
}

void session_reset(struct request *request)
{
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;

	if (lair)
		request_wait(request, lair_reset(lair, &call, argument_session(request)), &call, on_reset);
}

void session_shutdown(struct request *request)
{
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;

	if (lair)
		request_wait(request, lair_shutdown(lair, &call, argument_session(request)), &call, on_ended);
}

void session_undo(struct request *request)
{
	bool keep = json_is_true(json_object_get(request->arguments, "keep_files"));
	uint64_t steps = (uint64_t)argument_number(request, "steps");
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;

	if (lair)
		request_wait(request, lair_undo(lair, &call, argument_session(request), steps, keep), &call,
			     on_undone);
}

void session_branch(struct request *request)
{
	struct lair_branch branch = {
		.session = argument_session(request),
		.branch = argument_text(request, "new_session_id"),
		.files = json_is_true(json_object_get(request->arguments, "copy_files")),
	};
	double cell = argument_number(request, "at_cell");
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;
	char from[32];

	snprintf(from, sizeof(from), "%.0f", cell);
	if (cell > 0)
		branch.from = from;
	if (lair)
		request_wait(request, lair_branch(lair, &call, &branch), &call, on_branched);
}

void session_files(struct request *request)
{
	struct lair_files_of files = {
		.session = argument_session(request),
		.path = lair_text(argument_text(request, "path_rel")),
	};
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;

	if (lair)
		request_wait(request, lair_files(lair, &call, &files), &call, on_files);
}
