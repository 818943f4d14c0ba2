/* Whether anything has happened to the files of a tree, without a look at each of them.
 *
 * The warden watches the tree's directories by inotify, which its interpreters may not use, and counts. An
 * interpreter asks for the count, and asks again later: if both are the same, nobody has made, opened, changed,
 * moved or removed a file in between. Two things go unseen: what is written through a map, and what is written to a
 * file by a descriptor that was opened under a name which is not there any more. Whoever does so has opened the
 * file before.
 *
 * Nothing is watched before somebody asks for the count: inotify has few instances for each user. The warden also
 * says whether processes live in the cage that nobody waits for. A session can write nonsense into the page that it
 * shares with its warden, and so be told nonsense about its own files. The warden reads nothing from there but the
 * number of the last question, and whether the count is wanted. */
#pragma once

#include "proto/base.h"

/* In the warden, whose working directory is the tree, before its first fork. Without success each answer is 0. */
void witness_init(void);
/* Readable when somebody asks; -1: nobody can. */
int witness_bell(void);
/* Answer whoever asks. @strangers: there are processes that nobody waits for. */
void witness_answer(bool strangers);
/* Whether there is more to do until the tree is watched, and a piece of that. */
bool witness_busy(void);
void witness_step(void);
/* What has happened so far may be the work of cells. */
void witness_take(void);
/* What has happened since the last call of any of these was the work of the warden. @reading: it has only read, so
 * all else was somebody's. */
void witness_forgive(bool reading);

/* In an interpreter, after its fork: keep the bell at a number from @floor on. */
void witness_move(int floor);
/* It works in another tree from now on. */
void witness_leave(void);
/* The count, or 0: nobody knows. */
uint32_t witness_ask(void);
/* Whether processes live that nobody waits for, or nobody knows. */
bool witness_strangers(void);
