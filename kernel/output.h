/* The cell's stdout and stderr: one buffer each, into which everything that writes in this process goes in order,
 * be it print, C's printf or write(1, …). See output.c for how. */
#pragma once

#include "proto/base.h"

enum output_stream { OUTPUT_OUT, OUTPUT_ERR };

/* In the template, before Python starts: libc's stdout and stderr become ours, and forks and new programs flush. */
int output_install(void);

/* What an interpreter has written and not yet flushed lives in memory shared with its warden, so that it gets out
 * however the interpreter ends. Made by the warden, before the fork. NULL if there is no memory. */
struct output_shared *output_shared_new(void);
struct output_shared *output_shared_free(struct output_shared *shared);
/* In the warden, once nothing writes any more: put what is left on the two pipes. Waits a moment for a slow reader,
 * then gives up. @shared is hostile memory. */
void output_salvage(const struct output_shared *shared, int out, int err);

/* In the interpreter: buffer in @shared, which stays the caller's, and take descriptors 1 and 2 as they are now for
 * the true ones. Copies of them are kept from @floor up, to mend what a cell breaks. Returns 0 or -errno. */
int output_adopt(struct output_shared *shared, int floor);

/* Around a cell. With @eager every line goes out at once. The end flushes, and gives back descriptors 1 and 2 if
 * the cell closed them or put something else there. */
void output_begin(bool eager);
void output_end(void);

/* Append @text; flushes when it must. Returns the number of bytes taken, which is less than @size if a signal came,
 * or -errno
 * (-EINTR: nothing was taken). Never needs the GIL; may block unless output_try took it. */
ssize_t output_put(enum output_stream which, const char *text, size_t size);
/* The same where neither lock nor pipe has to be waited for, all or nothing: false means use output_put. */
bool output_try(enum output_stream which, const char *text, size_t size);
/* Returns 0, -EINTR with the rest still buffered, or -errno. */
int output_flush(enum output_stream which);
/* Both, through signals; what cannot be written stays. */
void output_flush_all(void);
