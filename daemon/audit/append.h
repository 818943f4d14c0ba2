/* A file that lines are appended to. Each append is one write(2) to a file opened to append, so lines never mix and
 * rotation by rename is safe. No line follows a partial one on the same line.
 *
 * A write or an open may block in the kernel without end: on a frozen file system, or one whose server is dead. So
 * a thread does both, and the caller waits for it for a bounded time. */
#pragma once

#include "proto/base.h"

/* The longest time that the caller waits. The kernel pauses a process that writes to a busy disk for 0.2 s. */
#define APPEND_PATIENCE_MS 1000

struct append_file;

/* Nothing is opened yet. Returns 0 or -errno. */
int append_new(struct append_file **filep, const char *path);
/* Append @lines, of @size bytes, which end with a newline; the function owns them, also if it fails. The file is
 * opened first if it is not open, made 0600 if it is missing; without @lines nothing else is done. Returns 0: the
 * bytes are in the file; -EINVAL: no regular file; -ETIMEDOUT: not within the time, they may still get there;
 * -EBUSY: an earlier append has not returned, nothing was tried; or another -errno. */
int append_lines(struct append_file *file, char *lines, size_t size);
/* Close it when its last append has returned. Returns NULL. */
struct append_file *append_free(struct append_file *file);
