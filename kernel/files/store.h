/* The contents of files, kept so that they can be brought back. They lie side by side in files without a name, the
 * packs, on the disk of the workspace. Only a process that holds a pack's descriptor can open it, nobody can give
 * it a name, and it goes with the process that made it. */
#pragma once

#include "proto/base.h"

struct pack;

/* The content of a file. */
struct blob {
	struct blob *next, **slot; /* in its pack */
	struct pack *pack;
	unsigned uses;
	uint64_t offset, size;
	uint64_t stored; /* bytes of it on the disk, in whole blocks */
};

/* A row of dropped contents that the disk has not back yet. */
struct loose {
	struct pack *pack; /* NULL: none */
	uint64_t from, to, stored;
};

struct store {
	struct pack *packs;
	int root;	    /* where packs are made: the workspace, the caller's */
	uint64_t max, held; /* bytes on the disk */
	struct loose loose;
};

/* @max: bytes that all contents together may take on the disk. */
void store_init(struct store *store, int root, uint64_t max);
void store_deinit(struct store *store);
/* In a fork: let go of the descriptors, and of nothing else. */
void store_leave(struct store *store);

/* Give the place of dropped contents back to the disk. Else it is done with the next content. */
void store_settle(struct store *store);

/* Begin a content of @size bytes. Returns 0 or -errno: -EFBIG if there could never be room for it, -ENOSPC if there
 * is none now. */
int store_begin(struct blob **blobp, struct store *store, uint64_t size);
/* Append what @fd, a regular file, has at @at, holes as holes; of data at most about @most bytes. Returns how many
 * bytes are done or -errno: -EAGAIN if it ended too early, -ENOBUFS if the store has no room, -ENOSPC if the disk
 * has none. */
ssize_t store_append(struct store *store, struct blob *blob, int fd, uint64_t at, uint64_t most);

/* Read from a content, as pread does. */
ssize_t blob_read(const struct blob *blob, char *data, size_t size, uint64_t at);
/* Compare it with @fd from @at on, as far as both have data or both have a hole; of data at most @most bytes.
 * Returns how many bytes are the same, 0 if some are not, or -errno. */
ssize_t blob_same(const struct blob *blob, int fd, uint64_t at, uint64_t most);
/* Give @fd so much of it, where the two differ: holes are punched, and blocks are shared where the file system can
 * do that. Returns how many bytes, or -errno. */
ssize_t blob_put(const struct blob *blob, int fd, uint64_t at, uint64_t most);
/* How far @fd is alike from @at on, as above: *@lacksp says whether it has a hole there, and the content data. */
uint64_t blob_lacks(const struct blob *blob, int fd, uint64_t at, uint64_t most, bool *lacksp);
struct blob *blob_use(struct blob *blob);
/* NULL is tolerated. Returns NULL. */
struct blob *blob_drop(struct store *store, struct blob *blob);
