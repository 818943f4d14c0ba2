/* Files, up and down, in pieces of which one is on its way at a time. What lies outside of the workspace goes
 * through a file in it, which a cell moves or copies: so it is the cage that decides. */
#include "e2b.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define STAGED_SIZE 32
#define ROOM ((size_t)1 << 20)
#define FORM_BUFFER 4096
#define FILES_MAX 256

/* ---- down ---- */

struct download {
	struct work work;
	char *path;		  /* in the workspace */
	char staged[STAGED_SIZE]; /* it is a copy of that name */
	uint64_t at, size, file;
};

static void staged_name(char name[static STAGED_SIZE])
{
	snprintf(name, STAGED_SIZE, ".e2b-%08x%08x", randombytes_random(), randombytes_random());
}

static void on_forgotten(struct lair_call *call, void *userdata)
{
	(void)userdata;
	(void)lair_call_free(call);
}

/* A cell of the branch for files; *callp is its call. */
static int files_cell(struct sandbox *sandbox, struct lair_call **callp, const char *branch, const char *call,
		      json_t *asked)
{
	json_t *given = json_pack("{s:s, s:o}", "call", call, "asked", asked);
	_cleanup_(freep) char *code = given ? program_cell("filesystem", given) : NULL;

	json_decref(given);
	sandbox->filed = true;
	return code ? lair_exec(sandbox->tenant->lair, callp,
				&(struct lair_exec){.session = branch, .code = lair_text(code)})
		    : -ENOMEM;
}

static void staged_remove(const struct work *work, const char *name)
{
	struct lair_call *call = NULL;

	if (*name && work->branch && work->sandbox && !work->sandbox->dead && work->sandbox->tenant->lair &&
	    !files_cell(work->sandbox, &call, work->branch, "Remove", json_pack("{s:s}", "path", name)))
		lair_on_done(call, on_forgotten, NULL);
}

static void download_finish(struct work *work)
{
	struct download *download = (struct download *)work;

	staged_remove(work, download->staged);
	free(download->path);
}

/* What a cell of the file system says; true if it is done. */
static bool staged_well(struct exchange *exchange)
{
	const struct lair_result *result = lair_result(exchange->call);
	const char *code, *message;
	json_t *told;
	bool done;

	if (!result) {
		e2b_refuse(exchange);
		return false;
	}
	told = result->out.data ? json_loadb(result->out.data, result->out.size, 0, NULL) : NULL;
	code = json_string_value(json_object_get(told, "code"));
	message = json_string_value(json_object_get(told, "message"));
	done = json_object_get(told, "done");
	if (!done)
		answer_problem(exchange, code ? connect_status(code) : 500, "error", "%s",
			       message ? message : "the session could not do it");
	json_decref(told);
	return done;
}

static void download_next(struct exchange *exchange);

static void download_write(struct exchange *exchange, const struct lair_piece *piece)
{
	struct download *download = exchange->state;

	if (piece->data.size > 0 && !stream_write(exchange, piece->data)) {
		stream_break(exchange);
		return;
	}
	download->at += piece->data.size;
	if (download->at >= download->size)
		stream_end(exchange);
	else if (piece->data.size == 0)
		stream_break(exchange); /* it has become shorter */
	else if (stream_waiting(exchange) < ROOM)
		download_next(exchange);
}

static void download_piece(struct exchange *exchange)
{
	if (lair_outcome(exchange->call))
		stream_break(exchange);
	else
		download_write(exchange, lair_piece(exchange->call));
}

static int download_get(struct exchange *exchange)
{
	struct download *download = exchange->state;
	struct lair_get get = {.session = download->work.sandbox->session,
			       .path = lair_text(download->path),
			       .offset = download->at,
			       .file = download->file};

	exchange->call = lair_call_free(exchange->call);
	return lair_get(exchange->tenant->lair, &exchange->call, &get);
}

static void download_next(struct exchange *exchange)
{
	int r;

	if (exchange->call && lair_outcome(exchange->call) == -EINPROGRESS)
		return;
	r = download_get(exchange);
	if (r)
		stream_break(exchange);
	else
		exchange_wait_any(exchange, 0, download_piece);
}

static void download_first(struct exchange *exchange)
{
	struct download *download = exchange->state;
	const struct lair_piece *piece = lair_piece(exchange->call);

	if (!piece) {
		e2b_refuse(exchange);
		return;
	}
	download->size = piece->size;
	download->file = piece->file;
	exchange->on_room = download_next;
	stream_begin(exchange, 200, "application/octet-stream", piece->size);
	download_write(exchange, piece);
}

static void download_staged(struct exchange *exchange)
{
	struct download *download = exchange->state;

	if (!staged_well(exchange))
		return;
	download->path = strdup(download->staged);
	exchange_wait_any(exchange, download->path ? download_get(exchange) : -ENOMEM, download_first);
}

static void download_branched(struct exchange *exchange)
{
	struct download *download = exchange->state;
	json_t *asked;

	staged_name(download->staged);
	asked = json_pack("{s:s, s:s}", "source", exchange_query(exchange, "path"), "target", download->staged);
	exchange_wait_any(
		exchange,
		files_cell(download->work.sandbox, &exchange->call, download->work.branch, "stage", asked),
		download_staged);
}

static void file_get_found(struct exchange *exchange)
{
	struct download *download = exchange->state;
	const char *path = exchange_query(exchange, "path");

	download->work.finish = download_finish;
	if (!path || !*path) {
		answer_problem(exchange, 400, "bad_request", "there is no path");
		return;
	}
	download->path = path_inside(download->work.sandbox, path);
	if (download->path)
		exchange_wait_any(exchange, download_get(exchange), download_first);
	else
		sandbox_branch(exchange, "f", true, download_branched);
}

void file_get_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct download), file_get_found);
}

/* ---- up ---- */

struct piece {
	struct piece *next;
	char *path; /* in the workspace; of the first piece of a file */
	bool begins, last;
	size_t size;
	char data[];
};

struct upload {
	struct work work;
	struct exchange *exchange;
	struct MHD_PostProcessor *form;
	struct piece *first, **end; /* that wait; of the first laird has been asked */
	struct piece *filling;
	json_t *done;
	uint64_t transfer, offset;
	size_t n;
	char *target;	/* the file that is coming, as the client names it */
	char *moves_to; /* it lies outside: where it is to go to in the end */
	char staged[STAGED_SIZE];
	bool found, over, asked, branches;
	int failed; /* -errno of the parser */
};

static void upload_finish(struct work *work)
{
	struct upload *upload = (struct upload *)work;

	if (upload->form)
		(void)MHD_destroy_post_processor(upload->form);
	for (struct piece *piece; (piece = upload->first);) {
		upload->first = piece->next;
		free(piece->path);
		free(piece);
	}
	if (upload->filling)
		free(upload->filling->path);
	free(upload->filling);
	json_decref(upload->done);
	if (upload->moves_to)
		staged_remove(work, upload->staged);
	free(upload->target);
	free(upload->moves_to);
}

/* ---- the pieces that come of a body ---- */

static void piece_push(struct upload *upload, bool last)
{
	struct piece *piece = steal_ptr(&upload->filling);

	piece->last = last;
	*upload->end = piece;
	upload->end = &piece->next;
}

static struct piece *piece_new(struct upload *upload, const char *path)
{
	struct piece *piece = calloc(1, sizeof(*piece) + LAIR_PIECE);

	if (!piece) {
		upload->failed = -ENOMEM;
		return NULL;
	}
	piece->begins = path;
	piece->path = path ? strdup(path) : NULL;
	if (path && !piece->path) {
		upload->failed = -ENOMEM;
		free(piece);
		return NULL;
	}
	return upload->filling = piece;
}

static void file_begins(struct upload *upload, const char *path)
{
	if (upload->filling)
		piece_push(upload, true);
	if (!path || !*path || ++upload->n > FILES_MAX)
		upload->failed = -EINVAL;
	else
		(void)piece_new(upload, path);
}

static void file_goes_on(struct upload *upload, const char *data, size_t size)
{
	while (size > 0 && !upload->failed) {
		size_t room = upload->filling ? LAIR_PIECE - upload->filling->size : 0, n = MIN(room, size);

		if (!upload->filling) {
			upload->failed = -EINVAL;
			return;
		}
		if (n > 0)
			memcpy(upload->filling->data + upload->filling->size, data, n);
		upload->filling->size += n;
		data += n;
		size -= n;
		if (size > 0) {
			piece_push(upload, false);
			(void)piece_new(upload, NULL);
		}
	}
}

static enum MHD_Result on_form(void *userdata, enum MHD_ValueKind kind, const char *key, const char *filename,
			       const char *type, const char *encoding, const char *data, uint64_t offset,
			       size_t size)
{
	struct upload *upload = userdata;
	const char *path = exchange_query(upload->exchange, "path");

	(void)kind;
	(void)type;
	(void)encoding;
	if (strcmp(key, "file") != 0)
		return MHD_YES;
	/* Of one part it may be told in the beginning that there is nothing yet. */
	if (offset == 0 && !(upload->filling && upload->filling->begins && upload->filling->size == 0 && filename &&
			     strcmp(upload->filling->path, path ? path : filename) == 0))
		file_begins(upload, path ? path : filename);
	if (!upload->failed)
		file_goes_on(upload, data, size);
	return upload->failed ? MHD_NO : MHD_YES;
}

/* ---- and go ---- */

static void upload_pump(struct exchange *exchange);

static void entry_done(struct upload *upload)
{
	const char *target = upload->target, *slash;
	_cleanup_(freep) char *whole = NULL;

	if (target[0] != '/' &&
	    asprintf(&whole, HOME "/%s", strncmp(target, "./", 2) == 0 ? target + 2 : target) >= 0)
		target = whole;
	slash = strrchr(target, '/');
	json_array_append_new(upload->done, json_pack("{s:s, s:s, s:s}", "name", slash ? slash + 1 : target, "type",
						      "file", "path", target));
	freep(&upload->target);
	freep(&upload->moves_to);
}

static void piece_sent(struct exchange *exchange)
{
	struct upload *upload = exchange->state;
	struct piece *piece = upload->first;

	upload->first = piece->next;
	if (!upload->first)
		upload->end = &upload->first;
	free(piece->path);
	free(piece);
	upload->asked = false;
	upload_pump(exchange);
}

static void moved(struct exchange *exchange)
{
	if (!staged_well(exchange))
		return;
	exchange->call = lair_call_free(exchange->call);
	entry_done(exchange->state);
	piece_sent(exchange);
}

static void move_branched(struct exchange *exchange)
{
	struct upload *upload = exchange->state;
	json_t *asked =
		json_pack("{s:s, s:s, s:b}", "source", upload->staged, "target", upload->moves_to, "move", 1);

	exchange_wait_any(exchange,
			  files_cell(upload->work.sandbox, &exchange->call, upload->work.branch, "stage", asked),
			  moved);
}

static void piece_put(struct exchange *exchange)
{
	struct upload *upload = exchange->state;
	const struct lair_transfer *transfer = lair_transfer(exchange->call);
	bool last = upload->first->last;

	if (!transfer) {
		e2b_refuse(exchange);
		return;
	}
	upload->transfer = transfer->transfer;
	upload->offset = transfer->offset;
	exchange->call = lair_call_free(exchange->call);
	if (last && upload->moves_to) {
		sandbox_branch(exchange, "f", true, move_branched);
		return;
	}
	if (last)
		entry_done(upload);
	piece_sent(exchange);
}

/* Where the file that begins is to go. Returns its name in the workspace; its own. */
static char *upload_place(struct upload *upload, const char *path)
{
	char *inside = path_inside(upload->work.sandbox, path);

	upload->target = strdup(path);
	if (inside || !upload->target)
		return inside;
	staged_name(upload->staged);
	upload->moves_to = strdup(path);
	return upload->moves_to ? strdup(upload->staged) : NULL;
}

static int piece_send(struct exchange *exchange)
{
	struct upload *upload = exchange->state;
	struct piece *piece = upload->first;
	_cleanup_(freep) char *path = NULL;
	struct lair_put put = {.session = upload->work.sandbox->session,
			       .transfer = upload->transfer,
			       .offset = upload->offset,
			       .data = {.data = piece->data, .size = piece->size},
			       .more = !piece->last};

	if (piece->begins) {
		path = upload_place(upload, piece->path);
		if (!path)
			return -ENOMEM;
		put.path = lair_text(path);
		put.transfer = put.offset = 0;
	}
	return lair_put(exchange->tenant->lair, &exchange->call, &put);
}

static void upload_pump(struct exchange *exchange)
{
	struct upload *upload = exchange->state;

	if (upload->asked || exchange->response)
		return;
	if (upload->failed) {
		answer_problem(exchange, upload->failed == -ENOMEM ? 503 : 400, "bad_request",
			       "the body has no file, or one without a path");
	} else if (upload->first) {
		upload->asked = true;
		exchange_wait_any(exchange, piece_send(exchange), piece_put);
	} else if (upload->over) {
		answer_json(exchange, 200, json_incref(upload->done));
	} else {
		exchange_more(exchange);
	}
}

static void upload_end(struct upload *upload)
{
	if (upload->over)
		return;
	upload->over = true;
	if (upload->form && MHD_destroy_post_processor(steal_ptr(&upload->form)) != MHD_YES)
		upload->failed = upload->failed ? upload->failed : -EINVAL;
	if (upload->filling)
		piece_push(upload, true);
	if (upload->n == 0)
		upload->failed = -EINVAL;
}

static size_t upload_body(struct exchange *exchange, const char *data, size_t size)
{
	struct upload *upload = exchange->state;

	if (!upload)
		return 0;
	if (!upload->found && size == 0)
		upload->branches = true; /* all of it is there, which is nothing */
	if (!upload->found || (size > 0 && upload->first))
		return 0;
	if (size == 0)
		upload_end(upload);
	else if (upload->form && MHD_post_process(upload->form, data, size) != MHD_YES)
		upload->failed = upload->failed ? upload->failed : -EINVAL;
	else if (!upload->form)
		file_goes_on(upload, data, size);
	upload_pump(exchange);
	return size;
}

static bool is_form(const struct exchange *exchange)
{
	const char *type = exchange_header(exchange, "Content-Type");

	return type && strncasecmp(type, "multipart/form-data", 19) == 0;
}

static void file_put_found(struct exchange *exchange)
{
	struct upload *upload = exchange->state;
	const char *encoding = exchange_header(exchange, "Content-Encoding");

	upload->exchange = exchange;
	upload->work.finish = upload_finish;
	upload->end = &upload->first;
	upload->done = json_array();
	if (encoding && *encoding && strcasecmp(encoding, "identity") != 0) {
		answer_problem(exchange, 415, "unsupported", "bodies are taken as they are, not as %.40s",
			       encoding);
		return;
	}
	if (is_form(exchange)) {
		upload->form = MHD_create_post_processor(exchange->http, FORM_BUFFER, on_form, upload);
		if (!upload->form)
			upload->failed = -EINVAL;
	} else {
		file_begins(upload, exchange_query(exchange, "path"));
	}
	upload->found = true;
	if (upload->branches)
		(void)upload_body(exchange, NULL, 0);
	else
		exchange_more(exchange);
}

void file_put_begin(struct exchange *exchange)
{
	exchange->on_body = upload_body;
	sandbox_enter(exchange, sizeof(struct upload), file_put_found);
}
