/* The body of an upload, cut into pieces of files. The body is a form in parts, or the bytes of one file; it may be
 * compressed. */
#pragma once

#include "e2b.h"

/* The answer has an entry for each. */
#define FORM_FILES_MAX 65536

struct piece {
	struct piece *next;
	char *path; /* as the client names it; of the first piece of a file */
	bool begins, last;
	size_t size;
	char data[];
};

struct pieces {
	struct piece *first, **end; /* those that are whole, in order */
	struct piece *filling;
	struct MHD_PostProcessor *form;
	struct z_stream_s *packed;
	const char *path; /* of the query: it holds for each file of a form; or NULL */
	size_t files;
	bool waits; /* the added data has more in it than had room */
	bool over, unpacked;
	/* 0, -ENOMEM, -EINVAL: no file, or one without a path; -E2BIG: too many files; -EBADMSG: not packed as it
	 * says. */
	int failed;
};

/* The body is a form, as the headers of the request say. */
void pieces_of_form(struct pieces *pieces, struct MHD_Connection *http, const char *path);
/* The body is one file; @packed: with gzip. */
void pieces_of_file(struct pieces *pieces, const char *path, bool packed);
/* Add a piece of the body. Returns how much of it was taken. Packed data is unpacked until a piece is full: if
 * pieces->waits then, more comes with the next, even without data. */
size_t pieces_add(struct pieces *pieces, const char *data, size_t size);
/* That was all. */
void pieces_end(struct pieces *pieces);
/* The first is not needed any more. */
void pieces_next(struct pieces *pieces);
void pieces_deinit(struct pieces *pieces);
