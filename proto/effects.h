/* What an interpreter does outside its own memory. It writes a note for each act into its memory file
 * (outbuffer.h), so the note outlives the interpreter. The interpreter and children that a cell forks write; the
 * router reads, by pread. The memory is hostile. */
#pragma once

#include "proto/base.h"

/* Kinds of effects. Each has a name in the protocol. The router itself records those from CALLED on: notes never
 * have them. */
enum effect_act {
	EFFECT_CONNECTED = 1, /* to an address */
	EFFECT_SENT,	      /* to an address, by a datagram or over an earlier connection */
	EFFECT_WROTE,	      /* a file: opened it for writing, or wrote to it */
	EFFECT_MADE,	      /* a directory, a link, a FIFO */
	EFFECT_RENAMED,
	EFFECT_REMOVED,
	EFFECT_RAN,    /* a program */
	EFFECT_CALLED, /* a function of the client, which has answered */
	EFFECT_MAYBE_CALLED,
	_EFFECT_ACT_N,
};

#define EFFECT_TEXT_MAX 496

/* A note is complete once it has its number. */
struct effect_note {
	uint64_t number;
	uint16_t act;
	uint16_t target, to; /* sizes; the texts follow each other */
	char text[EFFECT_TEXT_MAX];
};

/* The number of notes kept of each cell; further ones are only counted. */
#define EFFECT_NOTES_MAX 128
/* How many acts of a cell are remembered, so that none is noted twice. */
#define EFFECT_HASHES_MAX 2048

struct effects_book {
	uint64_t last;	/* the number of the last note, from 1, written or left out */
	uint64_t begin; /* what it was when the cell began */
	uint64_t hashes[EFFECT_HASHES_MAX];
	struct effect_note notes[EFFECT_NOTES_MAX]; /* each at its number, round and round */
};
