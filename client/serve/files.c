/* Files of a session: lists, and bytes in both directions, a piece at a time. No file is ever in memory as a whole.
 */
#include "doors.h"

#include "base/json.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static struct lair_text path_of(const struct exchange *exchange)
{
	const char *path = exchange_query(exchange, "path");

	return path && *path ? lair_text(path) : (struct lair_text){.data = NULL};
}

static struct lair_text path_needed(struct exchange *exchange)
{
	struct lair_text path = path_of(exchange);

	if (!path.data)
		answer_problem(exchange, 400, "bad_request", "path: it is needed");
	return path;
}

/* ---- lists ---- */

static void files_done(struct exchange *exchange)
{
	const struct lair_listing *listing = lair_listing(exchange->call);

	answer_json(exchange, 200,
		    json_pack("{s:o, s:o}", "files", json_files(listing->files), "next",
			      listing->next ? json_integer((json_int_t)listing->next) : json_null()));
}

void v1_files(struct exchange *exchange)
{
	struct lair_files_of files = {.path = path_of(exchange), .after = exchange_query_number(exchange, "after")};
	struct lair *lair = session_lair(exchange, &files.session);

	if (lair)
		exchange_wait(exchange, lair_files(lair, &exchange->call, &files), files_done);
}

/* ---- out ---- */

/* One range of bytes; anything else is ignored. */
static void range_parse(struct download *download, const char *header)
{
	const char *at;
	char *end;

	download->end = UINT64_MAX;
	if (!header || strncasecmp(header, "bytes=", 6) != 0 || strchr(header, ','))
		return;
	at = header + 6;
	if (*at == '-' && at[1] >= '0' && at[1] <= '9') {
		download->tail = strtoull(at + 1, &end, 10);
		download->ranged = *end == '\0';
		if (!download->ranged)
			download->tail = 0;
		else if (download->tail == 0)
			download->from = UINT64_MAX;
		return;
	}
	if (*at < '0' || *at > '9')
		return;
	download->from = strtoull(at, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		download->end = strtoull(end + 1, &end, 10);
	else if (*end == '-')
		end++;
	download->ranged = *end == '\0' && download->end >= download->from;
	if (!download->ranged)
		*download = (struct download){.get = download->get, .end = UINT64_MAX};
	else if (download->end < UINT64_MAX)
		download->end++;
}

static void piece_done(struct exchange *exchange)
{
	struct download *download = exchange->download;
	const struct lair_piece *piece = lair_outcome(exchange->call) ? NULL : lair_piece(exchange->call);
	size_t size;

	download->asks = false;
	/* The file is another one, or shorter than it was. */
	if (!piece || piece->data.size == 0) {
		stream_break(exchange);
		return;
	}
	size = (size_t)MIN((uint64_t)piece->data.size, download->end - download->from);
	download->from += size;
	if (!stream_write(exchange, (struct lair_text){.data = piece->data.data, .size = size}))
		stream_break(exchange);
	else if (download->from == download->end)
		stream_end(exchange);
}

int download_ask(struct exchange *exchange)
{
	struct download *download = exchange->download;

	exchange->call = lair_call_free(exchange->call);
	download->asks = true;
	download->get.offset = download->from == UINT64_MAX ? 0 : download->from;
	download->get.size = MIN(download->end - download->get.offset, (uint64_t)LAIR_PIECE);
	return lair_get(exchange->tenant->lair, &exchange->call, &download->get);
}

static void on_room(struct exchange *exchange)
{
	const struct download *download = exchange->download;

	if (download->asks || download->from >= download->end)
		return;
	if (download_ask(exchange))
		stream_break(exchange);
	else
		exchange_wait_any(exchange, 0, piece_done);
}

static bool range_fits(struct exchange *exchange, uint64_t size)
{
	struct download *download = exchange->download;
	char header[96];

	if (download->tail) {
		download->from = size - MIN(size, download->tail);
		download->end = size;
	}
	download->end = MIN(download->end, size);
	answer_header(exchange, "Accept-Ranges", "bytes");
	if (!download->ranged)
		return true;
	if (download->from >= size) {
		snprintf(header, sizeof(header), "bytes */%" PRIu64, size);
		answer_header(exchange, "Content-Range", header);
		answer_problem(exchange, 416, "bad_request", "the file has %" PRIu64 " bytes", size);
		return false;
	}
	snprintf(header, sizeof(header), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, download->from,
		 download->end - 1, size);
	answer_header(exchange, "Content-Range", header);
	return true;
}

void download_begin(struct exchange *exchange)
{
	struct download *download = exchange->download;
	const struct lair_piece *piece = lair_piece(exchange->call);
	uint64_t began = download->get.offset;

	download->asks = false;
	if (!range_fits(exchange, piece->size))
		return;
	download->get.file = piece->file;
	/* Cell output is hostile, also to browsers. */
	answer_header(exchange, "Content-Security-Policy", "sandbox; default-src 'none'");
	answer_header(exchange, "Content-Disposition", "attachment");
	if (download->from == download->end || exchange->head) {
		/* libmicrohttpd says the size of the answer to a HEAD, too. */
		stream_begin(exchange, download->ranged ? 206 : 200, "application/octet-stream",
			     download->end - download->from);
		if (download->from == download->end)
			stream_end(exchange);
		return;
	}
	stream_begin(exchange, download->ranged ? 206 : 200, "application/octet-stream",
		     download->end - download->from);
	exchange->on_room = on_room;
	if (began == download->from && piece->data.size > 0)
		piece_done(exchange);
}

void download_of(struct exchange *exchange, struct download *download)
{
	exchange->download = download;
	if (!exchange_header(exchange, "If-Range"))
		range_parse(download, exchange_header(exchange, "Range"));
	else
		download->end = UINT64_MAX;
}

void v1_download(struct exchange *exchange)
{
	struct download *download = calloc(1, sizeof(*download));

	exchange->state = download;
	exchange->free_state = free;
	if (!download) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	download->get.path = path_needed(exchange);
	if (!download->get.path.data || !session_lair(exchange, &download->get.session))
		return;
	download_of(exchange, download);
	exchange_wait(exchange, download_ask(exchange), download_begin);
}

/* ---- in ---- */

struct upload {
	struct lair_put put;
	char *piece; /* LAIR_PIECE bytes */
	size_t size;
	uint64_t all;
	bool asks, ended;
};

static void upload_free(void *state)
{
	struct upload *upload = state;

	if (upload)
		free(upload->piece);
	free(upload);
}

static void upload_put(struct exchange *exchange);

static void put_done(struct exchange *exchange)
{
	struct upload *upload = exchange->state;
	const struct lair_transfer *transfer = lair_transfer(exchange->call);
	bool last = !upload->put.more;

	upload->asks = false;
	upload->all += upload->size;
	upload->size = 0;
	if (last) {
		answer_json(exchange, 201,
			    json_pack("{s:s, s:I}", "path", exchange_query(exchange, "path"), "size",
				      (json_int_t)upload->all));
		return;
	}
	upload->put.transfer = transfer->transfer;
	upload->put.offset = transfer->offset;
	upload->put.path = (struct lair_text){.data = NULL};
	if (upload->ended)
		upload_put(exchange);
	else
		exchange_more(exchange);
}

static void upload_put(struct exchange *exchange)
{
	struct upload *upload = exchange->state;

	upload->asks = true;
	upload->put.more = !upload->ended;
	upload->put.data = (struct lair_text){.data = upload->piece, .size = upload->size};
	exchange->call = lair_call_free(exchange->call);
	exchange_wait(exchange, lair_put(exchange->tenant->lair, &exchange->call, &upload->put), put_done);
}

static size_t on_body(struct exchange *exchange, const char *data, size_t size)
{
	struct upload *upload = exchange->state;
	size_t n = MIN(size, LAIR_PIECE - upload->size);

	if (size == 0) {
		upload->ended = true;
		if (!upload->asks)
			upload_put(exchange);
		return 0;
	}
	/* The piece is laird's until it has answered. */
	if (upload->asks)
		return 0;
	memcpy(upload->piece + upload->size, data, n);
	upload->size += n;
	if (upload->size == LAIR_PIECE)
		upload_put(exchange);
	return n;
}

static bool mode_take(struct exchange *exchange, unsigned *mode)
{
	const char *text = exchange_query(exchange, "mode");
	char *end;

	if (!text)
		return true;
	*mode = (unsigned)strtoul(text, &end, 8);
	if (*text && !*end && *mode > 0 && *mode <= 0777)
		return true;
	answer_problem(exchange, 400, "bad_request", "mode: expected permissions, such as 644");
	return false;
}

void v1_upload(struct exchange *exchange)
{
	struct upload *upload = calloc(1, sizeof(*upload));

	exchange->state = upload;
	exchange->free_state = upload_free;
	if (upload)
		upload->piece = malloc(LAIR_PIECE);
	if (!upload || !upload->piece) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	upload->put.path = path_needed(exchange);
	upload->put.directory = exchange_query_flag(exchange, "directory");
	if (upload->put.path.data && mode_take(exchange, &upload->put.mode) &&
	    session_lair(exchange, &upload->put.session))
		exchange->on_body = on_body;
}
