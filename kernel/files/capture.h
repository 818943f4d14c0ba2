/* Keep the state of a tree: what files there are, and a copy of what has changed since the state before. */
#pragma once

#include "scan.h"

struct capture {
	struct scan scan;
	struct store *store;
	int root;
	struct manifest *before, *found;
	uint64_t kept; /* bytes that were not in the store before */
	struct file **inodes_before, **inodes;
	size_t at; /* in found */
	int fd;	   /* of the file that is being copied */
	uint64_t done;
	unsigned tries;
	struct blob *likely;	/* what its content was before, until it proves to be another */
	const uint64_t *mapped; /* inodes that are written to without notice */
	size_t n_mapped;
	bool (*make_room)(void *userdata); /* forget something older; whether there was anything */
	void *userdata;
};

/* @root: a descriptor of the directory, taken over. @before: what is known of it, which is used. */
int capture_begin(struct capture *capture, struct store *store, int root, struct manifest *before);
/* Do some more. Returns 0 when it is done, then `found` is what there is; 1 if there is more to do; or -errno. */
int capture_step(struct capture *capture);
void capture_deinit(struct capture *capture);
