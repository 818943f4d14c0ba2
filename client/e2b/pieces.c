/* The body of an upload, cut into pieces of files. */
#include "pieces.h"

#include <stdlib.h>
#include <zlib.h>

#define FORM_BUFFER 4096
/* For inflateInit2: gzip alone, with the largest window. */
#define GZIP_WINDOW (16 + MAX_WBITS)

static void fail(struct pieces *pieces, int error)
{
	if (!pieces->failed)
		pieces->failed = error;
}

static void piece_free(struct piece *piece)
{
	if (piece)
		free(piece->path);
	free(piece);
}

static void piece_push(struct pieces *pieces, bool last)
{
	struct piece *piece = steal_ptr(&pieces->filling);

	piece->last = last;
	*pieces->end = piece;
	pieces->end = &piece->next;
}

static void piece_new(struct pieces *pieces, const char *path)
{
	struct piece *piece = calloc(1, sizeof(*piece) + LAIR_PIECE);

	if (!piece) {
		fail(pieces, -ENOMEM);
		return;
	}
	piece->begins = path;
	piece->path = path ? strdup(path) : NULL;
	if (path && !piece->path) {
		fail(pieces, -ENOMEM);
		free(piece);
		return;
	}
	pieces->filling = piece;
}

static void file_begins(struct pieces *pieces, const char *path)
{
	if (pieces->filling)
		piece_push(pieces, true);
	if (!path || !*path)
		fail(pieces, -EINVAL);
	else if (++pieces->files > FORM_FILES_MAX)
		fail(pieces, -E2BIG);
	else
		piece_new(pieces, path);
}

/* Room in the piece that is filled, which is another if that one is full. */
static size_t room(struct pieces *pieces)
{
	if (pieces->filling && pieces->filling->size == LAIR_PIECE) {
		piece_push(pieces, false);
		piece_new(pieces, NULL);
	}
	if (!pieces->filling)
		fail(pieces, -EINVAL);
	return pieces->failed ? 0 : LAIR_PIECE - pieces->filling->size;
}

static void file_goes_on(struct pieces *pieces, const char *data, size_t size)
{
	size_t n;

	for (; size > 0 && (n = MIN(room(pieces), size)) > 0; data += n, size -= n) {
		memcpy(pieces->filling->data + pieces->filling->size, data, n);
		pieces->filling->size += n;
	}
}

/* ---- forms ---- */

static enum MHD_Result on_form(void *userdata, enum MHD_ValueKind kind, const char *key, const char *filename,
			       const char *type, const char *encoding, const char *data, uint64_t offset,
			       size_t size)
{
	struct pieces *pieces = userdata;
	const char *path = pieces->path ? pieces->path : filename;

	(void)kind;
	(void)type;
	(void)encoding;
	/* A part need not have a name. */
	if (!key || strcmp(key, "file") != 0)
		return MHD_YES;
	/* Of one part it may be told in the beginning that there is nothing yet. */
	if (offset == 0 && !(pieces->filling && pieces->filling->begins && pieces->filling->size == 0 && filename &&
			     strcmp(pieces->filling->path, path) == 0))
		file_begins(pieces, path);
	if (!pieces->failed)
		file_goes_on(pieces, data, size);
	return pieces->failed ? MHD_NO : MHD_YES;
}

void pieces_of_form(struct pieces *pieces, struct MHD_Connection *http, const char *path)
{
	pieces->end = &pieces->first;
	pieces->path = path;
	pieces->form = MHD_create_post_processor(http, FORM_BUFFER, on_form, pieces);
	if (!pieces->form)
		fail(pieces, -EINVAL);
}

/* ---- one file ---- */

void pieces_of_file(struct pieces *pieces, const char *path, bool packed)
{
	pieces->end = &pieces->first;
	file_begins(pieces, path);
	if (!packed || pieces->failed)
		return;
	pieces->packed = calloc(1, sizeof(*pieces->packed));
	if (!pieces->packed || inflateInit2(pieces->packed, GZIP_WINDOW) != Z_OK) {
		freep(&pieces->packed);
		fail(pieces, -ENOMEM);
	}
}

/* Unpack until the piece is full or the data used up. After one stream another may follow. */
static size_t unpack(struct pieces *pieces, const char *data, size_t size)
{
	struct z_stream_s *packed = pieces->packed;
	size_t before;
	int r = Z_OK;

	packed->next_in = (Bytef *)(uintptr_t)data;
	packed->avail_in = (uInt)size;
	while (room(pieces) > 0 && !pieces->first && (packed->avail_in > 0 || pieces->waits)) {
		before = packed->avail_out = (uInt)room(pieces);
		packed->next_out = (Bytef *)pieces->filling->data + pieces->filling->size;
		if (pieces->unpacked && inflateReset(packed) != Z_OK)
			fail(pieces, -ENOMEM);
		r = inflate(packed, Z_NO_FLUSH);
		pieces->filling->size += before - packed->avail_out;
		pieces->unpacked = r == Z_STREAM_END;
		pieces->waits = r == Z_OK && packed->avail_out == 0;
		if (r == Z_BUF_ERROR)
			break; /* it wants more */
		if (r != Z_OK && r != Z_STREAM_END)
			fail(pieces, r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG);
	}
	return pieces->failed ? size : size - packed->avail_in;
}

size_t pieces_add(struct pieces *pieces, const char *data, size_t size)
{
	if (pieces->failed)
		return size;
	if (pieces->packed)
		return unpack(pieces, data, size);
	if (!pieces->form)
		file_goes_on(pieces, data, size);
	else if (MHD_post_process(pieces->form, data, size) != MHD_YES)
		fail(pieces, -EINVAL);
	return size;
}

void pieces_end(struct pieces *pieces)
{
	if (pieces->over)
		return;
	pieces->over = true;
	if (pieces->form && MHD_destroy_post_processor(steal_ptr(&pieces->form)) != MHD_YES)
		fail(pieces, -EINVAL);
	if (pieces->packed && !pieces->unpacked)
		fail(pieces, -EBADMSG);
	if (pieces->filling)
		piece_push(pieces, true);
	if (pieces->files == 0)
		fail(pieces, -EINVAL);
}

void pieces_next(struct pieces *pieces)
{
	struct piece *piece = pieces->first;

	pieces->first = piece->next;
	if (!pieces->first)
		pieces->end = &pieces->first;
	piece_free(piece);
}

void pieces_deinit(struct pieces *pieces)
{
	if (pieces->form)
		(void)MHD_destroy_post_processor(steal_ptr(&pieces->form));
	if (pieces->packed)
		(void)inflateEnd(pieces->packed);
	freep(&pieces->packed);
	while (pieces->first)
		pieces_next(pieces);
	piece_free(steal_ptr(&pieces->filling));
}
