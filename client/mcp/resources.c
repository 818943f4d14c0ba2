/* resources/list walks over the workspaces of the caller's sessions, a page at a time. A cursor is the number of
 * files before the page, since nothing is remembered between two requests. No daemon is started just to find out
 * that there is nothing. */
#include "resources.h"

#include "base/json.h"
#include "base/text.h"
#include "tools.h"
#include "uri.h"
#include "versions.h"
#include "walk.h"

#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define PAGE 500
/* The walk looks at no more than this. */
#define ENTRIES_MAX 20000
#define READ_MAX ((uint64_t)16 << 20)
#define TEMPLATES_TTL_MS 3600000

/* ---- resources/list ---- */

struct listing {
	struct walk walk;
	struct walk_entry entry;
	uint64_t after, skip, n_seen, n_entries;
	json_t *resources;
	bool more;
};

static void next_directory(struct request *request);

static void list_free(void *work)
{
	struct listing *list = work;

	walk_deinit(&list->walk);
	walk_entry_deinit(&list->entry);
	json_decref(list->resources);
	free(list);
}

static void list_reply(struct request *request)
{
	struct listing *list = request->work;
	json_t *result = json_pack("{s:O}", "resources", list->resources);
	char cursor[32];

	snprintf(cursor, sizeof(cursor), "%" PRIu64, list->skip + PAGE);
	if (list->more)
		json_object_set_new(result, "nextCursor", json_string(cursor));
	versions_cacheable(request, result, 0, false);
	request_reply(request, result);
}

static void list_file(struct listing *list, const char *path, uint64_t size)
{
	const char *type = uri_type(lair_text(path));
	json_t *resource;

	if (list->n_seen++ < list->skip)
		return;
	if (json_array_size(list->resources) >= PAGE) {
		list->more = true;
		return;
	}
	resource = json_pack("{s:o, s:o, s:I}", "uri", uri_of(lair_text(list->entry.session), lair_text(path)),
			     "name", json_text(lair_text(path)), "size", (json_int_t)size);
	if (type)
		json_object_set_new(resource, "mimeType", json_string(type));
	json_array_append_new(list->resources, resource);
}

/* Files with such names belong to programs. */
static bool is_hidden(struct lair_text name)
{
	return name.size == 0 || name.data[0] == '.' || text_is(name, "__pycache__");
}

static int list_entry(struct listing *list, const struct lair_file *file)
{
	char path[PATH_MAX];

	if (is_hidden(file->name) || ++list->n_entries > ENTRIES_MAX ||
	    !walk_join(path, list->entry.path, file->name))
		return 0;
	if (text_is(file->kind, "directory"))
		return walk_push(&list->walk, list->entry.session, path, true);
	if (text_is(file->kind, "file"))
		list_file(list, path, file->size);
	return 0;
}

/* If a session or a directory is gone by now, it has no files. */
static void on_part(struct request *request, struct lair_call *call)
{
	struct listing *list = request->work;
	const struct lair_listing *listing = lair_listing(call);
	struct lair_file file;
	size_t cursor = 0;
	int r = 0;

	while (!r && listing && lair_next_file(listing->files, &cursor, &file))
		r = list_entry(list, &file);
	list->after = listing ? listing->next : 0;
	if (r)
		request_fail(request, r, "out of memory");
	else
		next_directory(request);
}

static void next_directory(struct request *request)
{
	struct listing *list = request->work;
	struct lair_files_of files = {.after = list->after};
	struct lair_call *call = NULL;

	if (!files.after) {
		walk_entry_deinit(&list->entry);
		if (list->more || list->n_entries > ENTRIES_MAX || !walk_pop(&list->walk, &list->entry)) {
			list_reply(request);
			return;
		}
	}
	files.session = list->entry.session;
	files.path = *list->entry.path ? lair_text(list->entry.path) : (struct lair_text){.data = NULL};
	request_wait(request, lair_files(request->engine->lair, &call, &files), &call, on_part);
}

static int push_session(struct listing *list, const struct mcp_options *options, const struct lair_session *session)
{
	char id[160];

	/* root is told the sessions of all users. */
	if (session->uid != geteuid() || (options->session && !text_is(session->session, options->session)) ||
	    session->session.size >= sizeof(id))
		return 0;
	memcpy(id, session->session.data, session->session.size);
	id[session->session.size] = '\0';
	return walk_push(&list->walk, id, "", true);
}

static void on_sessions(struct request *request, struct lair_call *call)
{
	struct listing *list = request->work;
	struct lair_session session;
	size_t cursor = 0;
	int r = 0;

	if (lair_outcome(call)) {
		request_fail(request, lair_outcome(call), lair_call_error(call));
		return;
	}
	while (!r && lair_next_session(lair_sessions(call), &cursor, &session))
		r = push_session(list, &request->engine->options, &session);
	if (r)
		request_fail(request, r, "out of memory");
	else
		next_directory(request);
}

static bool cursor_parse(const json_t *params, uint64_t *skipp)
{
	const json_t *cursor = json_object_get(params, "cursor");
	const char *text = json_text_value(cursor);
	char *end;

	*skipp = 0;
	if (!cursor || json_is_null(cursor))
		return true;
	if (!text || !*text || strlen(text) > 9 || strspn(text, "0123456789") != strlen(text))
		return false;
	*skipp = strtoull(text, &end, 10);
	return *skipp % PAGE == 0;
}

void resources_list(struct request *request)
{
	struct lair_call *call = NULL;
	const char *sentence;
	struct listing *list;
	struct lair *lair;
	uint64_t skip;
	int r;

	if (!cursor_parse(request->arguments, &skip)) {
		request_refuse(request, RPC_INVALID_PARAMS, "there is no page of that cursor", NULL);
		return;
	}
	list = calloc(1, sizeof(*list));
	if (!list) {
		request_fail(request, -ENOMEM, "out of memory");
		return;
	}
	list->skip = skip;
	list->resources = json_array();
	request->work = list;
	request->work_free = list_free;
	r = engine_connect(request->engine, &lair, false, &sentence);
	if (r == LAIR_E_NO_DAEMON) {
		list_reply(request);
	} else if (r) {
		request_fail(request, r, sentence);
	} else {
		request->tolerant = true;
		request_wait(request, lair_list(lair, &call), &call, on_sessions);
	}
}

/* ---- resources/templates/list ---- */

void resources_templates(struct request *request)
{
	json_t *cursor = json_object_get(request->arguments, "cursor"), *result;

	if (cursor && !json_is_null(cursor)) {
		request_refuse(request, RPC_INVALID_PARAMS, "there is no page of that cursor", NULL);
		return;
	}
	result = json_pack("{s:[{s:s, s:s, s:s, s:s}]}", "resourceTemplates", "uriTemplate", URI_TEMPLATE, "name",
			   "session-file", "title", "A file of a session", "description",
			   "What code in a session wrote to its directory, by the path relative to that.");
	versions_cacheable(request, result, TEMPLATES_TTL_MS, true);
	request_reply(request, result);
}

/* ---- resources/read ---- */

struct reading {
	char *session, *path, *data;
	uint64_t size, offset, file;
};

static void next_piece(struct request *request);

static void reading_free(void *work)
{
	struct reading *reading = work;

	free(reading->session);
	free(reading->path);
	free(reading->data);
	free(reading);
}

static void not_found(struct request *request, const char *sentence)
{
	/* The code of this error is another one in each era. */
	request_refuse(request, request->modern ? RPC_INVALID_PARAMS : RPC_NOT_FOUND, sentence,
		       json_pack("{s:O}", "uri", json_object_get(request->arguments, "uri")));
}

static void read_reply(struct request *request)
{
	struct reading *reading = request->work;
	struct lair_text data = {.data = reading->data, .size = (size_t)reading->offset};
	bool text = utf8_valid((struct bytes){.data = data.data, .size = data.size}) &&
		    !memchr(data.data, '\0', data.size);
	const char *type = uri_type(lair_text(reading->path));
	json_t *result, *contents;

	if (!type)
		type = text ? "text/plain" : "application/octet-stream";
	contents = json_pack("{s:O, s:s, s:o}", "uri", json_object_get(request->arguments, "uri"), "mimeType", type,
			     text ? "text" : "blob", text ? json_text(data) : json_base64(data));
	result = json_pack("{s:[o]}", "contents", contents);
	versions_cacheable(request, result, 0, false);
	request_reply(request, result);
}

static bool reading_begin(struct request *request, const struct lair_piece *piece)
{
	struct reading *reading = request->work;
	char sentence[128];

	if (piece->size > READ_MAX) {
		snprintf(sentence, sizeof(sentence), "the file has %" PRIu64 " bytes; %" PRIu64 " are the most",
			 piece->size, READ_MAX);
		request_refuse(request, RPC_INTERNAL, sentence, NULL);
		return false;
	}
	reading->size = piece->size;
	reading->file = piece->file;
	reading->data = malloc((size_t)piece->size + 1);
	if (!reading->data)
		request_fail(request, -ENOMEM, "out of memory");
	return reading->data != NULL;
}

static void on_piece(struct request *request, struct lair_call *call)
{
	struct reading *reading = request->work;
	const struct lair_piece *piece = lair_piece(call);
	size_t size;

	if (!piece) {
		int error = lair_outcome(call);

		if (error == LAIR_E_NO_SESSION || error == LAIR_E_NO_FILE || error == LAIR_E_BAD_REQUEST ||
		    error == LAIR_E_DENIED)
			not_found(request, lair_call_error(call));
		else
			request_fail(request, error, lair_call_error(call));
		return;
	}
	if (!reading->data && !reading_begin(request, piece))
		return;
	size = (size_t)MIN((uint64_t)piece->data.size, reading->size - reading->offset);
	memcpy(reading->data + reading->offset, piece->data.data, size);
	reading->offset += size;
	if (size > 0 && reading->offset < reading->size)
		next_piece(request);
	else
		read_reply(request);
}

static void next_piece(struct request *request)
{
	struct reading *reading = request->work;
	struct lair_get get = {
		.session = reading->session,
		.path = lair_text(reading->path),
		.offset = reading->offset,
		.file = reading->file,
	};
	struct lair_call *call = NULL;

	request_wait(request, lair_get(request->engine->lair, &call, &get), &call, on_piece);
}

void resources_read(struct request *request)
{
	const char *uri = json_text_value(json_object_get(request->arguments, "uri")), *sentence;
	struct reading *reading;
	struct lair *lair;
	int r;

	if (!uri) {
		request_refuse(request, RPC_INVALID_PARAMS, "uri must be a string", NULL);
		return;
	}
	reading = calloc(1, sizeof(*reading));
	if (!reading) {
		request_fail(request, -ENOMEM, "out of memory");
		return;
	}
	request->work = reading;
	request->work_free = reading_free;
	if (!uri_parse(uri, &reading->session, &reading->path) ||
	    session_is_anothers(request->engine, reading->session)) {
		not_found(request, "there is no resource of that URI");
		return;
	}
	request->tolerant = true;
	r = engine_connect(request->engine, &lair, false, &sentence);
	if (r == LAIR_E_NO_DAEMON)
		not_found(request, sentence);
	else if (r)
		request_fail(request, r, sentence);
	else
		next_piece(request);
}
