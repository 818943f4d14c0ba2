/* What an interpreter has written and not yet put into its pipes: a memory file that the router makes and keeps a
 * descriptor of, so that it gets out however the interpreter ends. The interpreter maps it; the router reads it, by
 * pread, when the interpreter is dead: it is hostile memory. The other way it carries one number. Then come notes
 * of effects (effects.h), and room for the interpreter's letters (link.h), which is not mapped and holds no memory
 * while there are none. */
#pragma once

#include "proto/effects.h"

#define OUTBUFFER_SIZE 65536

struct outbuffer {
	uint32_t start, end; /* of what is pending in data */
	char data[OUTBUFFER_SIZE];
};

/* stdout's, then stderr's. */
struct outbuffers {
	struct outbuffer streams[2];
	/* The cell that was last to be interrupted, written before the signal is asked for: a SIGINT that arrives
	 * before its cell has begun is told by it from one that came too late for the cell before. Or a question:
	 * its serial, with this bit. */
#define QUESTION_INTERRUPTED (1ULL << 63)
	uint64_t interrupted;
	struct effects_book effects;
};

/* The largest letter, and room for one that has not been read when the next is written. */
#define LETTER_MAX (16U << 20)
#define LETTERS_OFFSET 262144
#define OUTBUFFERS_FILE_SIZE (LETTERS_OFFSET + 2 * (size_t)LETTER_MAX)
_Static_assert(sizeof(struct outbuffers) <= LETTERS_OFFSET, "letters come after it");
