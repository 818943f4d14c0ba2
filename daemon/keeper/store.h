/* The descriptors that outlive a router, each under a name, held by the keeper. A descriptor that has been sent
 * is in the kernel's hands, even if the sender dies. */
#pragma once

#include "proto/list.h"

#define STORE_FDS_MAX 8

/* A name. The router says what a kind means, see vault.h; 0 is none. */
struct store_name {
	uint64_t kind, family, number;
};

struct store_item {
	struct list node;
	struct store_name name;
	size_t n_fds;
	int fds[STORE_FDS_MAX];
};

#define STORE_BUCKETS 256

struct store {
	struct list buckets[STORE_BUCKETS]; /* by family; each oldest first */
	size_t bucket;			    /* being handed out */
	struct list *after;		    /* the item that was handed out last, or the head */
};

void store_init(struct store *store);
void store_deinit(struct store *store);

/* Keep @fds, which the store owns from now on, also if it fails; older ones of that name are replaced. Returns 0
 * or -ENOMEM. */
int store_put(struct store *store, const struct store_name *name, const int *fds, size_t n_fds);

/* Close the descriptors of this name; without a kind, all of its family. */
void store_forget(struct store *store, const struct store_name *name);

/* Begin to hand out all items; store_next gives the next one, borrowed, or NULL. */
void store_rewind(struct store *store);
struct store_item *store_next(struct store *store);
/* The router could not take it: hand out the same item again. */
void store_again(struct store *store);
