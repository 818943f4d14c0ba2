/* copy_to_sandbox: the daemon reads files of the host, if the session's profile allows it. This file only
 * decides on the next request. A directory is walked, and each file is as many requests as it has pieces. */
#include "tools.h"

#include "base/json.h"
#include "base/text.h"
#include "tool_result.h"
#include "walk.h"

#include <stdio.h>

#define ENTRIES_MAX 10000

/* The paths of the walk are relative to both @source and @dest; "" is these themselves. */
struct copy {
	struct walk walk;
	struct walk_entry entry; /* is copied now */
	char *source, *dest;
	uint64_t after, transfer;
	uint64_t n_entries, n_files, n_skipped, size;
};

static void next_entry(struct request *request);

static void copy_free(void *work)
{
	struct copy *copy = work;

	walk_deinit(&copy->walk);
	walk_entry_deinit(&copy->entry);
	free(copy->source);
	free(copy->dest);
	free(copy);
}

/* @path below @root. New; NULL without memory. */
static char *below(const char *root, const char *path)
{
	char *joined = NULL;

	if (asprintf(&joined, "%s%s%s", root, *path && root[strlen(root) - 1] != '/' ? "/" : "", path) < 0)
		return NULL;
	return joined;
}

static void out_of_memory(struct request *request)
{
	request_fail(request, -ENOMEM, "out of memory");
}

static void finished(struct request *request)
{
	struct copy *copy = request->work;
	json_t *structured = result_done(request);

	json_object_set_new(structured, "path", json_text(lair_text(copy->dest)));
	json_object_set_new(structured, "files", json_integer((json_int_t)copy->n_files));
	json_object_set_new(structured, "size", json_integer((json_int_t)copy->size));
	if (copy->n_skipped)
		json_object_set_new(structured, "skipped", json_integer((json_int_t)copy->n_skipped));
	json_object_update(structured, request->news);
	request_reply(request, result_new(structured));
}

/* ---- a file ---- */

static void file_piece(struct request *request);

static void on_piece(struct request *request, struct lair_call *call)
{
	struct copy *copy = request->work;
	const struct lair_transfer *transfer = lair_transfer(call);

	copy->transfer = transfer->transfer;
	if (copy->transfer) {
		file_piece(request);
		return;
	}
	copy->n_files++;
	copy->size += transfer->offset;
	next_entry(request);
}

static void file_piece(struct request *request)
{
	struct copy *copy = request->work;
	_cleanup_(freep) char *from = below(copy->source, copy->entry.path);
	_cleanup_(freep) char *to = below(copy->dest, copy->entry.path);
	struct lair_copy_in piece = {
		.session = argument_session(request),
		.source = lair_text(from),
		.path = lair_text(to),
		.transfer = copy->transfer,
	};
	struct lair_call *call = NULL;

	if (from && to)
		request_wait(request, lair_copy_in(request->engine->lair, &call, &piece), &call, on_piece);
	else
		out_of_memory(request);
}

/* ---- a directory ---- */

static void directory_part(struct request *request, step *then)
{
	struct copy *copy = request->work;
	_cleanup_(freep) char *from = below(copy->source, copy->entry.path);
	struct lair_files_of files = {
		.session = argument_session(request),
		.path = lair_text(from),
		.host = true,
		.after = copy->after,
	};
	struct lair_call *call = NULL;

	if (from)
		request_wait(request, lair_files(request->engine->lair, &call, &files), &call, then);
	else
		out_of_memory(request);
}

static int push_part(struct copy *copy, struct lair_items files)
{
	char path[PATH_MAX];
	struct lair_file file;
	size_t cursor = 0;
	int r = 0;

	while (!r && lair_next_file(files, &cursor, &file)) {
		bool directory = text_is(file.kind, "directory");

		copy->n_entries++;
		if ((directory || text_is(file.kind, "file")) && walk_join(path, copy->entry.path, file.name))
			r = walk_push(&copy->walk, NULL, path, directory);
		else
			copy->n_skipped++;
	}
	return r;
}

static void on_part(struct request *request, struct lair_call *call)
{
	struct copy *copy = request->work;

	copy->after = lair_listing(call)->next;
	if (push_part(copy, lair_listing(call)->files))
		out_of_memory(request);
	else if (copy->n_entries > ENTRIES_MAX)
		request_fail(request, LAIR_E_TOO_LARGE, "there are more than 10000 files; copy a part of them");
	else if (copy->after)
		directory_part(request, on_part);
	else
		next_entry(request);
}

static void on_made(struct request *request, struct lair_call *call)
{
	struct copy *copy = request->work;

	(void)call;
	copy->after = 0;
	directory_part(request, on_part);
}

static void directory_make(struct request *request)
{
	struct copy *copy = request->work;
	_cleanup_(freep) char *to = below(copy->dest, copy->entry.path);
	struct lair_put put = {.session = argument_session(request), .path = lair_text(to), .directory = true};
	struct lair_call *call = NULL;

	if (to)
		request_wait(request, lair_put(request->engine->lair, &call, &put), &call, on_made);
	else
		out_of_memory(request);
}

/* ---- the walk ---- */

static void next_entry(struct request *request)
{
	struct copy *copy = request->work;

	walk_entry_deinit(&copy->entry);
	copy->transfer = 0;
	if (!walk_pop(&copy->walk, &copy->entry))
		finished(request);
	else if (copy->entry.directory)
		directory_make(request);
	else
		file_piece(request);
}

/* Whether it can be listed. If something else is wrong, copying it as a file will say so. */
static void on_looked(struct request *request, struct lair_call *call)
{
	struct copy *copy = request->work;

	request->tolerant = false;
	if (walk_push(&copy->walk, NULL, "", lair_outcome(call) == 0))
		out_of_memory(request);
	else
		next_entry(request);
}

static void on_opened(struct request *request, struct lair_call *call)
{
	struct copy *copy = request->work;

	request->news = json_object();
	result_add_opened(request->news, request, lair_session(call));
	copy->entry.path = strdup("");
	request->tolerant = true;
	if (copy->entry.path)
		directory_part(request, on_looked);
	else
		out_of_memory(request);
}

/* The target: @given; or inside @given, if that ends as a directory; or else the last name of @path. New. */
static char *destination(const char *path, const char *given)
{
	size_t size = strlen(path);
	const char *name;
	char *joined = NULL;

	if (given && *given && given[strlen(given) - 1] != '/')
		return strdup(given);
	while (size > 1 && path[size - 1] == '/')
		size--;
	name = memrchr(path, '/', size);
	name = name ? name + 1 : path;
	if (asprintf(&joined, "%s%.*s", given ? given : "", (int)(size - (size_t)(name - path)), name) < 0)
		return NULL;
	return joined;
}

void copy_to_sandbox(struct request *request)
{
	struct lair *lair = request_lair(request);
	struct copy *copy = lair ? calloc(1, sizeof(*copy)) : NULL;
	struct lair_call *call = NULL;

	if (!lair)
		return;
	if (!copy) {
		out_of_memory(request);
		return;
	}
	request->work = copy;
	request->work_free = copy_free;
	copy->source = strdup(argument_text(request, "source"));
	copy->dest = destination(argument_text(request, "source"), argument_text(request, "dest_rel"));
	if (!copy->source || !copy->dest)
		out_of_memory(request);
	else
		request_wait(request,
			     lair_open(lair, &call, argument_session(request), request->engine->options.profile),
			     &call, on_opened);
}
