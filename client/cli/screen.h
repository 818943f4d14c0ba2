/* The output of a session, made safe for a terminal. Text, colours and movements over what the cell itself has
 * written pass. Every other sequence is left out and counted: those that set titles or the clipboard, that have
 * the terminal answer, which would be typed into our input, or that move over the output of others. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#include <stdio.h>

enum screen_state {
	SCREEN_TEXT,
	SCREEN_ESCAPE,	      /* after ESC */
	SCREEN_INTERMEDIATE,  /* after ESC and a character that needs another */
	SCREEN_CSI,	      /* after ESC [ */
	SCREEN_STRING,	      /* of OSC, DCS, APC, PM or SOS, */
	SCREEN_STRING_ESCAPE, /* and after an ESC in it */
};

enum { SCREEN_SEQUENCE = 64 };

struct screen {
	struct {
		enum screen_state state;
		char sequence[SCREEN_SEQUENCE]; /* the characters of a CSI, without ESC [ */
		size_t size;			/* may be larger than the array: then the sequence is too long */
		char cut[3];			/* the beginning of a character, whose end has not come */
		size_t n_cut;
	} streams[2];
	uint64_t below;	      /* so many lines above the cursor the cell has begun to write */
	bool styled, blinded; /* colours are set; the cursor is hidden */
	uint64_t dropped;     /* how many sequences were left out */
};

/* Put into @out what of @text may reach a terminal. */
void screen_pass(struct screen *screen, enum lair_stream stream, struct lair_text text, FILE *out);
/* Somebody else writes now, and no cell may move the cursor over that. */
void screen_mark(struct screen *screen);
/* The cell has ended: put into @out what restores the terminal. Returns how many sequences were left out. */
uint64_t screen_end(struct screen *screen, FILE *out);
