/* The output of a cell, up to a limit: the head, and a ring that holds the tail. The middle is counted, not
 * kept. If a user pays for it, the limit is low at first and grows with the head as long as that user has room. */
#pragma once

#include "base/text.h"
#include "front/user.h"

/* What nobody pays for. */
#define OUTPUT_FREE ((size_t)16 << 10)

struct output {
	size_t limit; /* of head and tail together, as far as it is granted */
	size_t most;  /* it will not become more than this */
	size_t known; /* what the next router would take for most; for the owner, who tells it */
	struct user *user;
	char *head, *tail;
	size_t head_size, head_allocated;
	size_t tail_size, tail_allocated, tail_at; /* tail_at: where the next byte goes once the ring is full */
	uint64_t total;
};

void output_init(struct output *output, size_t limit);
/* Call it before anything is written: @user pays, twice for each byte, because the session's transcript has it,
 * too. */
void output_paid_by(struct output *output, struct user *user);
void output_deinit(struct output *output);

/* Add @data. Without memory for it, it counts as dropped. */
void output_add(struct output *output, struct bytes data);

/* From now on keep @size bytes more at most, half of them the last ones. For a cell that was told to end: what its
 * processes say of that must not bury what it said before. */
void output_last_words(struct output *output, size_t size);

/* So much was written here and is gone. */
void output_skip(struct output *output, uint64_t size);

uint64_t output_dropped(const struct output *output);

/* The kept output, in order; @at is how much had been written before each piece. Returns how many pieces there
 * are. */
struct piece {
	uint64_t at;
	struct bytes data;
};
#define PIECES_MAX 3
size_t output_pieces(const struct output *output, struct piece pieces[PIECES_MAX]);

/* Head, a line that says how much is missing, tail: one span that lives as long as the output. If there is no
 * memory for all, more is dropped: so output_dropped and the size of the head are final only now. Nothing may be
 * added afterwards. */
struct bytes output_join(struct output *output);
/* Whether it is too much to be copied. */
bool output_is_long(const struct output *output);
/* Give all of it to @bin, in the same order: nothing is copied, and the output has nothing any more. */
void output_give(struct output *output, struct bulk_bin *bin);
/* Fill @bin with a copy of what its pieces were for a former router. Returns 0 or -ENOMEM. */
int output_bring_back(struct bulk_bin *bin, struct bytes joined, size_t head_size, uint64_t dropped);
/* Keep nothing of it: all is dropped. */
void output_give_up(struct output *output);

/* The pieces of what output_join made, when the head had @head_size bytes and @dropped were missing. */
size_t output_split(struct piece pieces[PIECES_MAX], struct bytes joined, size_t head_size, uint64_t dropped);
/* The same of what output_give made. */
size_t output_given(struct piece pieces[PIECES_MAX], const struct bulk_bin *bin, uint64_t dropped);
