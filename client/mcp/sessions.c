/* The tools about a session as a whole: one question each. */
#include "tools.h"

#include "base/json.h"
#include "base/result.h"
#include "tool_result.h"

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

	json_object_set_new(structured, "state", json_string(fates[FATE_RESET].name));
	result_add(structured, &(struct lair_result){.effects = *lair_reset_effects(call)});
	request_reply(request, result_new(structured));
}

static void on_ended(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request);

	(void)call;
	json_object_set_new(structured, "state", json_string(fates[FATE_ENDED].name));
	request_reply(request, result_new(structured));
}

static void on_branched(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request);

	json_object_set_new(structured, "session_id", json_text(lair_session(call)->session));
	json_object_set_new(structured, "own_files", json_boolean(lair_session(call)->own_files));
	result_add(structured, &(struct lair_result){.effects = lair_session(call)->effects});
	request_reply(request, result_new(structured));
}

static void on_undone(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request);

	json_object_set_new(structured, "at_cell", json_integer((json_int_t)lair_state(call)->cell));
	result_add(structured,
		   &(struct lair_result){.back = lair_state(call)->back, .effects = lair_state(call)->effects});
	request_reply(request, result_new(structured));
}

static json_t *file_change(const struct lair_file_difference *file)
{
	json_t *it = json_pack("{s:o, s:o, s:o}", "path", json_text(file->path), "change", json_text(file->change),
			       "kind", json_text(file->kind));

	if (file->was.data)
		json_object_set_new(it, "was", json_text(file->was));
	json_object_set_new(it, "size", json_integer((json_int_t)file->size));
	if (file->size_before != file->size)
		json_object_set_new(it, "before", json_integer((json_int_t)file->size_before));
	return it;
}

static json_t *variable_change(const struct lair_variable_difference *variable)
{
	json_t *it = json_pack("{s:o, s:o, s:o, s:o}", "name", json_text(variable->name), "change",
			       json_text(variable->change), "type", json_text(variable->type), "text",
			       json_text(variable->text));

	if (variable->text_before.data)
		json_object_set_new(it, "before", json_text(variable->text_before));
	return it;
}

static void add_lacks(json_t *structured, const struct lair_difference *difference)
{
	char note[512];
	int size = 0;

	if (difference->files_lack.data)
		size = snprintf(note, sizeof(note), "Of files nothing is known: %.*s. ",
				(int)MIN(difference->files_lack.size, (size_t)200), difference->files_lack.data);
	if (difference->variables_lack.data)
		size += snprintf(note + size, sizeof(note) - (size_t)size, "Of variables nothing is known: %.*s. ",
				 (int)MIN(difference->variables_lack.size, (size_t)200),
				 difference->variables_lack.data);
	if (size > 0)
		json_object_set_new(structured, "note", json_text((struct lair_text){note, (size_t)size - 1}));
}

static void on_compared(struct request *request, struct lair_call *call)
{
	json_t *structured = result_done(request), *files = json_array(), *variables = json_array();
	const struct lair_difference *difference = lair_difference(call);
	uint64_t more = difference->files_more + difference->variables_more;
	struct lair_variable_difference variable;
	json_t *unsure = json_texts(difference->unsure);
	struct lair_file_difference file;
	size_t cursor = 0;

	while (lair_next_file_difference(difference->files, &cursor, &file))
		json_array_append_new(files, file_change(&file));
	for (cursor = 0; lair_next_variable_difference(difference->variables, &cursor, &variable);)
		json_array_append_new(variables, variable_change(&variable));
	json_object_set_new(structured, "since_cell", json_integer((json_int_t)difference->since));
	json_object_set_new(structured, "until_cell", json_integer((json_int_t)difference->until));
	json_object_set_new(structured, "file_changes", files);
	json_object_set_new(structured, "variable_changes", variables);
	if (more > 0)
		json_object_set_new(structured, "changes_left_out", json_integer((json_int_t)more));
	if (json_array_size(unsure) > 0)
		json_object_set(structured, "unsure", unsure);
	json_decref(unsure);
	add_lacks(structured, difference);
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
			     lair_open(lair, &call, argument_session(request), request->engine->options.profile),
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

static const char *cell_named(char name[static 32], const struct request *request, const char *argument)
{
	double cell = argument_number(request, argument);

	snprintf(name, 32, "%.0f", cell);
	return cell > 0 ? name : NULL;
}

void session_branch(struct request *request)
{
	struct lair_branch branch = {
		.session = argument_session(request),
		.branch = argument_text(request, "new_session_id"),
		.files = json_is_true(json_object_get(request->arguments, "copy_files")),
		.share = json_is_false(json_object_get(request->arguments, "copy_files")),
	};
	struct lair_call *call = NULL;
	struct lair *lair;
	char from[32];

	/* Without laird the request is answered, and no more. */
	branch.from = cell_named(from, request, "at_cell");
	lair = request_lair(request);
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

void session_diff(struct request *request)
{
	struct lair *lair = request_lair(request);
	struct lair_call *call = NULL;
	char since[32], until[32];

	if (lair)
		request_wait(request,
			     lair_diff(lair, &call, argument_session(request),
				       cell_named(since, request, "since_cell"),
				       cell_named(until, request, "until_cell")),
			     &call, on_compared);
}
