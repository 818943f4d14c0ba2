/* A message, encoded, as it is sent and written down. Output of a cell may be so large that each copy of it would
 * take milliseconds of everybody's time. It is then no part of the encoded bytes: they have an empty bin in its
 * place, and it is a bulk that several texts share. */
#pragma once

#include "proto/wire.h"

#include <sys/uio.h>

/* What is shorter is copied. */
#define BULK_MIN ((size_t)64 << 10)
#define BULK_BINS 2
/* The head, a line that says how much is missing, and the tail, whose ring has two halves. */
#define BULK_PIECES 4
#define TEXT_PARTS_MAX (BULK_BINS * (BULK_PIECES + 1) + BULK_BINS + 1)

/* One bin: what its pieces point into, and they. */
struct bulk_bin {
	char *memory[2]; /* freed with it */
	char note[80];
	struct bytes pieces[BULK_PIECES];
	size_t size; /* of the pieces. 0: the bin is where it belongs, in the encoded bytes */
};

struct bulk {
	unsigned refs;
	struct bulk_bin bins[BULK_BINS];
};

/* Returns NULL when out of memory. */
struct bulk *bulk_new(void);
struct bulk *bulk_ref(struct bulk *bulk);
/* Frees it if nobody else has it. Returns NULL; @bulk may be NULL. */
struct bulk *bulk_unref(struct bulk *bulk);
/* Bytes; of NULL there are none. */
size_t bulk_size(const struct bulk *bulk);

struct text {
	msgpack_sbuffer encoded;
	struct bulk *bulk;    /* NULL: none */
	size_t at[BULK_BINS]; /* where in @encoded the empty bins are */
	char heads[BULK_BINS][5];
};

/* The text of @buffer, which is empty afterwards. */
struct text text_take(msgpack_sbuffer *buffer);
/* Share @bulk, whose bins stand for the values of @names in the one frame that is encoded. Returns 0, or -EINVAL if
 * one of them is no empty bin there. */
int text_load(struct text *text, struct bulk *bulk, const struct bytes names[BULK_BINS]);
void text_free(struct text *text);

size_t text_size(const struct text *text);
/* All of it, in order; the parts point into @text, too. Returns how many there are. */
size_t text_parts(const struct text *text, struct iovec parts[TEXT_PARTS_MAX]);
