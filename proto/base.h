/* The conventions every file of Lair relies on.
 *
 * Errors: a function that can fail returns int.
 *   0          success
 *   negative   -errno: fatal to the operation; forwarded unchanged, logged once where it arose
 *   positive   MODULE_E_*: documented in the module's header, handled by its caller, never passed on
 * A session's failure ends that session. Only a broken invariant ends the process.
 *
 * Ownership: x_new/x_free for heap objects (x_free returns NULL), x_init/x_deinit for embedded ones; deinit
 * tolerates half-built objects; descriptors start at -1. A local owns through _cleanup_ and hands over with
 * steal_fd/steal_ptr on the line where ownership moves. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAIR_VERSION "0.1.0"

#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* A borrowed span of memory. data == NULL means absent, which is not the same as empty. */
struct bytes {
	const char *data;
	size_t size;
};

#define BYTES(literal) ((struct bytes){.data = (literal), .size = sizeof(literal) - 1})

static inline struct bytes bytes_of(const char *string)
{
	return (struct bytes){.data = string, .size = string ? strlen(string) : 0};
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool bytes_is(struct bytes a, const char *string)
{
	return a.data && bytes_equal(a, bytes_of(string));
}

/* As a string, as far as it fits. */
static inline void bytes_copy(char *out, size_t size, struct bytes bytes)
{
	size_t n = bytes.data ? MIN(bytes.size, size - 1) : 0;

	if (n > 0)
		memcpy(out, bytes.data, n);
	out[n] = '\0';
}

/* Whether a negative errno says that descriptors, memory or processes are scarce: there may be some again in a
 * moment. */
static inline bool is_scarcity(int r)
{
	return r == -ETOOMANYREFS || r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS ||
	       r == -ENOSPC || r == -EAGAIN;
}

static inline int fd_close(int fd)
{
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

static inline void fd_closep(int *fdp)
{
	*fdp = fd_close(*fdp);
}

static inline int steal_fd(int *fdp)
{
	int fd = *fdp;

	*fdp = -1;
	return fd;
}

static inline void *steal_pointer(void *pp)
{
	void **slot = pp, *p = *slot;

	*slot = NULL;
	return p;
}

#define steal_ptr(pp) ((__typeof__(*(pp)))steal_pointer(pp))

static inline void freep(void *pp)
{
	void **slot = pp;

	free(*slot);
	*slot = NULL;
}
