/* A transcript: the output of a session's processes to one stream, in a memory file that outlives the router.
 * The kernel moves it there from the pipe, so each byte is always in exactly one of the two. */
#pragma once

#include "proto/base.h"

#include <sys/types.h>

struct transcript {
	int fd;		/* -1: none */
	uint64_t begin; /* where that which no reply holds yet begins */
	uint64_t end;
	uint64_t kept; /* where that which the next router needs begins */
	uint64_t gone; /* up to here the file holds nothing any more */
	uint64_t hole; /* and from where a cell's head ends up to here */
};

void transcript_init(struct transcript *transcript);
void transcript_deinit(struct transcript *transcript);

/* A fresh one. Returns 0 or -errno. */
int transcript_create(struct transcript *transcript);
/* The transcript of the last router; it owns @fd from now on. Returns 0 or -errno. */
int transcript_open(struct transcript *transcript, int fd, uint64_t begin);

/* Take up to @size bytes out of @pipe. Returns how many, and a copy of them in @buffer; 0 at its end; or -errno. */
ssize_t transcript_take(struct transcript *transcript, int pipe, char *buffer, size_t size);

/* Read again what has been taken before, from @at. Returns how much, or -errno. */
ssize_t transcript_read(const struct transcript *transcript, uint64_t at, char *buffer, size_t size);

/* @text takes the place of what no reply holds yet. Without memory, nothing does. */
void transcript_replace(struct transcript *transcript, struct bytes text);

/* @text was written @at bytes after the beginning, to a fresh one. */
void transcript_put(struct transcript *transcript, uint64_t at, struct bytes text);

/* All that this router knows of it is written down: what is before its beginning will not be needed. */
void transcript_settle(struct transcript *transcript);
/* Give back memory: of what is not needed, and of the middle of what does not fit into @limit. That takes time, so
 * it is done in pieces. Returns whether more of it is left for another call. */
bool transcript_trim(struct transcript *transcript, uint64_t limit);
