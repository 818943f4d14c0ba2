/* The effects of a session: what it has done outside its own memory, as far as Lair saw it, and when. Going back
 * does not undo it, so the client is told. The list is bounded: of the oldest only the number is kept. */
#pragma once

#include "kept.h"

/* The time of an effect, in cells: while a cell ran, or between it and the next. */
#define EFFECTS_DURING(cell) (2 * (cell))
#define EFFECTS_AFTER(cell) (2 * (cell) + 1)
#define EFFECTS_FOREVER UINT64_MAX

struct effects {
	struct kept_list entries;
	uint64_t dropped, dropped_at; /* how many are not kept; when the last of them was */
};

/* Take in what an interpreter has noted in @file, its memory file: after number @heard, up to @last. */
void effects_gather(struct effects *effects, int file, uint64_t heard, uint64_t last, uint64_t when);

/* A call was answered, or (@maybe) nobody knows whether it was done. @effect: of an `effect` function: it is told
 * first, and forgotten last. */
void effects_call(struct effects *effects, bool maybe, bool effect, const char *text, uint64_t when);

/* Append what was done after the state of @cell and before @until, without repetitions, as an array of `effect`:
 * calls of `effect` functions first and other calls last, and apart from that as they were done;
 * nothing if there is none. Returns how many more there were than the array holds. */
uint64_t effects_put(const struct effects *effects, uint64_t cell, uint64_t until, msgpack_sbuffer *buffer);

/* A branch starts with the effects before it: those of @from up to the state of @cell. */
void effects_copy(struct effects *effects, const struct effects *from, uint64_t cell);

/* One that is known already. @written: it is in the ledger. */
struct effect_record;
void effects_add(struct effects *effects, const struct effect_record *effect, bool written);
