/* The cell's stdout and stderr: one buffer each. Everything that writes in this process goes into it in order:
 * print, C's printf or write(1, …). output.c says how. */
#pragma once

#include "proto/base.h"

enum output_stream { OUTPUT_OUT, OUTPUT_ERR };

/* In the template, before the language starts: libc's stdout and stderr become ours, and forks flush. Programs that
 * are started by vfork call no handlers: the language flushes before those. */
int output_install(void);

/* In the interpreter: buffer in the memory file @buffers (proto/outbuffer.h), which stays the caller's. Descriptors
 * 1 and 2 must be the true ones. Copies of them are kept from @floor up, to repair them after a cell. Returns 0 or
 * -errno. */
int output_adopt(int buffers, int floor);

/* Put a letter for the router (proto/link.h) into that file; @offset says where it lies. Returns 0 or -errno. */
int output_put_letter(uint32_t *offset, const char *text, size_t size);

/* The cell that was interrupted last, as the router wrote it into that file; 0 for none. */
uint64_t output_interrupted(void);

/* What `prepare` has asked for is done: the router finds it in that file. */
void output_prepared(void);
/* The session has that set of packages now: the same. It comes along with every fork. */
void output_tell_set(const char *set);
/* Keep all other threads from writing, so that none is in the middle of it; a copy holds what was held. False: a
 * thread is in the middle of it, and does not end. */
bool output_hold(void);
void output_let_go(void);

/* In a frozen copy: give up the shared buffers, the copies and the letters. */
void output_release(void);

/* Around a cell. With @eager every line is sent at once, also those that threads write until the next cell begins.
 * The end flushes, and restores descriptors 1 and 2 if the cell closed or replaced them. */
void output_begin(bool eager);
void output_end(void);

/* Append @text; flushes if it must. Returns the number of bytes taken, which is less than @size if a signal
 * came, or -errno (-EINTR: nothing was taken). May block unless output_try took it. */
ssize_t output_put(enum output_stream which, const char *text, size_t size);
/* The same without waiting for lock or pipe. Takes all or nothing: if false, use output_put. */
bool output_try(enum output_stream which, const char *text, size_t size);
/* Returns 0, -EINTR with the rest still buffered, or -errno. */
int output_flush(enum output_stream which);
/* Flush both streams; signals do not stop it. Text that cannot be written stays. */
void output_flush_all(void);
