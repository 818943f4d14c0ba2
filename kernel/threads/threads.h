/* The other threads of a process, kept through a copy of it. Each is made to stand still in the handler of a
 * signal: then the kernel has put its registers on its stack, and the copy has both. In the copy a new thread is
 * made for each, with the old one's thread-local memory, and returns from that signal.
 *
 * While the others stand still they may hold any lock, and no lock of the language's may change hands. So between
 * threads_hold and threads_release, and in the copy until threads_revive, nothing may take a lock, allocate memory,
 * or run the language. */
#pragma once

#include "proto/base.h"

#include <pthread.h>

/* In the template, while it has one thread and no filter of system calls: find out where libc keeps what belongs
 * to a thread. */
void threads_learn(void);

/* Whether there is no other thread. It takes less than threads_size, and no /proc; one that ends may still count.
 */
bool threads_alone(void);

/* How many other threads there are, or -1 if that cannot be seen. One that ends may still be counted. */
int threads_size(void);

/* Make all other threads stand still. Returns NULL; or why they do not: then all of them run on. Signals that come
 * too late find nobody who waits, and do nothing. The reason is valid until the next call. */
const char *threads_hold(void);

/* How many stood still the last time. */
int threads_held(void);

/* Whether a copy could be made now, as far as can be told: why not, or NULL. Tries it if the last try has failed,
 * or if there are other threads than then. */
const char *threads_why_no_copy(void);

/* After threads_hold, in the process that was copied: all run on. */
void threads_release(void);

/* After threads_hold, in a copy: all are there again and run on. On failure, -errno, none of them runs, and the
 * process must end at once. */
int threads_revive(void);

/* The kernel's number of @thread if libc remembers another one, which is then at @remembered; or 0. */
pid_t threads_number(pthread_t thread, int **remembered);

/* Changes whenever threads that stood still run on, also in a copy. */
int threads_epoch(void);

/* For threads_learn: find the functions of libc that numbers.c and waits.c replace. */
void threads_numbers(void);
void threads_waits(void);
