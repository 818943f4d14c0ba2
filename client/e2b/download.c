/* Files, down: in pieces of which one is on its way at a time. */
#include "e2b.h"

#include <stdlib.h>

#define ROOM ((size_t)1 << 20)

struct download {
	struct work work;
	char *path;		  /* in the workspace */
	char staged[STAGED_SIZE]; /* it is a copy of that name */
	uint64_t at, size, file;
};

static void download_finish(struct work *work)
{
	struct download *download = (struct download *)work;

	staged_remove(work, download->staged);
	free(download->path);
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
		sandbox_branch(exchange, "f", download_branched);
}

void file_get_begin(struct exchange *exchange)
{
	sandbox_enter(exchange, sizeof(struct download), file_get_found);
}
