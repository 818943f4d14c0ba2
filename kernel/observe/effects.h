/* Effects: what a session does outside its own memory, which going back does not undo. effects.c says which are
 * seen. */
#pragma once

#include "proto/effects.h"

/* In the template, before any thread: find the functions of libc that ours replace. */
void effects_install(void);

/* In the interpreter: write notes into @book, which the router shares. NULL, in a frozen copy: write none. */
void effects_adopt(struct effects_book *book);

/* A cell begins or has ended: an act that was noted before may be noted again. */
void effects_mark(void);

/* Something is about to be written to @fd, by one of the functions that output.c takes over. */
void effects_writing(int fd);
