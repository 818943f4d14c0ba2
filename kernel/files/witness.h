/* Whether anything has happened to the files of a tree, without a look at each of them.
 *
 * The warden watches the tree's directories by inotify, which its interpreters may not use, and counts. An
 * interpreter asks for the count, and asks again later: if both are the same, nobody has made, opened, changed,
 * moved or removed a file in between. Only what is written through a map goes unseen; but whoever has the map has
 * opened the file.
 *
 * Nothing is watched before somebody asks: inotify has few instances for each user. A session can write nonsense
 * into the page that it shares with its warden, and so be told nonsense about its own files. The warden reads
 * nothing from there but the number of the last question. */
#pragma once

#include "proto/base.h"

/* In the warden, whose working directory is the tree, before its first fork. Without success each answer is 0. */
void witness_init(void);
/* Readable when somebody asks; -1: nobody can. */
int witness_bell(void);
/* Answer whoever asks. */
void witness_answer(void);
/* Whether there is more to do until the tree is watched, and a piece of that. */
bool witness_busy(void);
void witness_step(void);
/* What has happened since the last call of any of these was the work of the warden, or of nobody's cell. */
void witness_forgive(void);

/* In an interpreter, after its fork: keep the bell at a number from @floor on. */
void witness_move(int floor);
/* It works in another tree from now on. */
void witness_leave(void);
/* The count, or 0: nobody knows. */
uint32_t witness_ask(void);
