/* The output of an interpreter that is not in its pipes yet. It lies in a memory file that the router makes and
 * keeps a descriptor of, so it is not lost when the interpreter ends. The interpreter maps the file; the router
 * reads it, by pread, when the interpreter is dead: it is hostile memory. In the other direction it carries one
 * number. Then come notes of effects (effects.h), and room for the interpreter's letters (link.h), which is not
 * mapped and takes no memory while there are none. */
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
	/* The cell that was interrupted last; the router writes it before it asks for the signal. So the
	 * interpreter can tell a SIGINT that arrives before its cell has begun from one that was meant for the
	 * cell before. For a question: its serial, with this bit. */
#define QUESTION_INTERRUPTED (1ULL << 63)
	uint64_t interrupted;
	struct effects_book effects;
	uint64_t prepared; /* 1: the order of `prepare` is done */
	char set[80];	   /* of packages: the present one; "": none */
};

/* The largest letter. There is room for two, so that the next can be written before one has been read. */
#define LETTER_MAX (16U << 20)
#define LETTERS_OFFSET 262144
#define OUTBUFFERS_FILE_SIZE (LETTERS_OFFSET + 2 * (size_t)LETTER_MAX)
_Static_assert(sizeof(struct outbuffers) <= LETTERS_OFFSET, "letters come after it");
