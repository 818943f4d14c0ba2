/* The cell's stdout and stderr: one buffer each, into which everything that writes in this process goes in order,
 * be it print, C's printf or write(1, …). See output.c for how. */
#pragma once

#include "proto/base.h"

enum output_stream { OUTPUT_OUT, OUTPUT_ERR };

/* In the template, before Python starts: libc's stdout and stderr become ours, and forks and new programs flush. */
int output_install(void);

/* In the interpreter: buffer in the memory file @buffers (proto/outbuffer.h), which stays the caller's, and take
 * descriptors 1 and 2 as they are now for the true ones. Copies of them are kept from @floor up, to mend what a
 * cell breaks. Returns 0 or -errno. */
int output_adopt(int buffers, int floor);

/* Put a letter of the router's (proto/link.h) into that file: @offset is where. Returns 0 or -errno. */
int output_put_letter(uint32_t *offset, const char *text, size_t size);

/* The cell that was last to be interrupted, as the router says there; 0 for none. */
uint64_t output_interrupted(void);
/* In a frozen copy: let go of all that. */
void output_release(void);

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
