/* Files, up: in pieces of which one is on its way at a time. */
#include "pieces.h"

#include <stdio.h>
#include <stdlib.h>

struct upload {
	struct work work;
	struct pieces pieces;
	struct exchange *exchange;
	json_t *done, *mark; /* mark: the metadata of each file */
	uint64_t transfer, offset;
	char *target;	/* the file that is coming, as the client names it */
	char *moves_to; /* it lies outside: where it is to go to in the end */
	char staged[STAGED_SIZE];
	bool found, over, asked;
};

static void upload_finish(struct work *work)
{
	struct upload *upload = (struct upload *)work;

	pieces_deinit(&upload->pieces);
	json_decref(upload->done);
	json_decref(upload->mark);
	if (upload->moves_to)
		staged_remove(work, upload->staged);
	free(upload->target);
	free(upload->moves_to);
}
static void upload_pump(struct exchange *exchange);

static void entry_done(struct upload *upload)
{
	const char *target = upload->target, *slash;
	const json_t *mark;
	_cleanup_(freep) char *whole = NULL;

	if (target[0] != '/' &&
	    asprintf(&whole, HOME "/%s", strncmp(target, "./", 2) == 0 ? target + 2 : target) >= 0)
		target = whole;
	slash = strrchr(target, '/');
	mark = mark_set(upload->work.sandbox, upload->target, upload->mark);
	json_array_append_new(upload->done, json_pack("{s:s, s:s, s:s, s:O*}", "name", slash ? slash + 1 : target,
						      "type", "file", "path", target, "metadata", mark));
	freep(&upload->target);
	freep(&upload->moves_to);
}

static void piece_sent(struct exchange *exchange)
{
	struct upload *upload = exchange->state;

	pieces_next(&upload->pieces);
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
	bool last = upload->pieces.first->last;

	if (!transfer) {
		e2b_refuse(exchange);
		return;
	}
	upload->transfer = transfer->transfer;
	upload->offset = transfer->offset;
	exchange->call = lair_call_free(exchange->call);
	if (last && upload->moves_to) {
		sandbox_branch(exchange, "f", move_branched);
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
	struct piece *piece = upload->pieces.first;
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

static void upload_failed(struct exchange *exchange, int error)
{
	if (error == -EBADMSG)
		answer_problem(exchange, 400, "bad_request", "the body is not packed with gzip, as it says");
	else if (error == -E2BIG)
		answer_problem(exchange, 413, "too_large", "a form has at most %d files", FORM_FILES_MAX);
	else if (error == -ENOMEM)
		answer_error(exchange, -ENOMEM, "out of memory");
	else
		answer_problem(exchange, 400, "bad_request", "the body has no file, or one without a path");
}

static void upload_pump(struct exchange *exchange)
{
	struct upload *upload = exchange->state;
	struct pieces *pieces = &upload->pieces;

	if (upload->asked || exchange->response)
		return;
	while (!pieces->failed && !pieces->first && pieces->waits)
		(void)pieces_add(pieces, NULL, 0);
	if (!pieces->failed && !pieces->first && upload->over)
		pieces_end(pieces);
	if (pieces->failed) {
		upload_failed(exchange, pieces->failed);
	} else if (pieces->first) {
		upload->asked = true;
		exchange_wait_any(exchange, piece_send(exchange), piece_put);
	} else if (upload->over) {
		answer_json(exchange, 200, json_incref(upload->done));
	} else {
		exchange_more(exchange);
	}
}

static size_t upload_body(struct exchange *exchange, const char *data, size_t size)
{
	struct upload *upload = exchange->state;
	size_t taken = 0;

	if (!upload)
		return 0;
	/* All of it may be there, which is nothing, before its sandbox is. */
	upload->over = upload->over || size == 0;
	if (!upload->found || (size > 0 && (upload->pieces.first || upload->pieces.waits)))
		return 0;
	if (size > 0)
		taken = pieces_add(&upload->pieces, data, size);
	upload_pump(exchange);
	return taken;
}

static bool is_form(const struct exchange *exchange)
{
	const char *type = exchange_header(exchange, "Content-Type");

	return type && strncasecmp(type, "multipart/form-data", 19) == 0;
}

static void file_put_found(struct exchange *exchange)
{
	struct upload *upload = exchange->state;
	const char *encoding = exchange_header(exchange, "Content-Encoding"),
		   *path = exchange_query(exchange, "path");
	bool packed;

	upload->exchange = exchange;
	upload->work.finish = upload_finish;
	upload->done = json_array();
	if (!mark_asked(exchange, &upload->mark))
		return;
	packed = encoding && strcasecmp(encoding, "gzip") == 0;
	if ((encoding && *encoding && !packed && strcasecmp(encoding, "identity") != 0) ||
	    (packed && is_form(exchange))) {
		answer_problem(exchange, 415, "unsupported",
			       "the bytes of a file come as they are or packed with gzip, and a form as it is");
		return;
	}
	if (is_form(exchange))
		pieces_of_form(&upload->pieces, exchange->http, path);
	else
		pieces_of_file(&upload->pieces, path, packed);
	upload->found = true;
	upload_pump(exchange);
}

void file_put_begin(struct exchange *exchange)
{
	exchange->on_body = upload_body;
	sandbox_enter(exchange, sizeof(struct upload), file_put_found);
}
