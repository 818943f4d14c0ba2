/* Effects: what a session does beyond its own memory, so that going back does not undo it. See effects.c for what
 * is seen. */
#pragma once

#include "proto/effects.h"

/* In the template, before any thread: find what takes libc's place. */
void effects_install(void);

/* In the interpreter: note effects in @book, which is shared with the router. NULL, in a frozen copy: in none. */
void effects_adopt(struct effects_book *book);

/* A cell begins, or has ended: what was noted before may be noted again. */
void effects_mark(void);

/* Something is about to be written to @fd, by functions that output.c takes over. */
void effects_writing(int fd);
