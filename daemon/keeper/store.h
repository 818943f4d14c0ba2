/* What outlives a router: its descriptors, each under a name, kept by the keeper. A descriptor that has been sent
 * is in the kernel's hands, whatever becomes of the sender. */
#pragma once

#include "base/list.h"

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

#define STORE_SHELVES 256

struct store {
	struct list shelves[STORE_SHELVES]; /* by family; each oldest first */
	size_t shelf;			    /* which is being handed out */
	struct list *after;		    /* the item of it that was handed out last, or its head */
};

void store_init(struct store *store);
void store_deinit(struct store *store);

/* Keep @fds, which are the store's from now on, whatever is returned; the same name is replaced. Returns 0 or
 * -ENOMEM. */
int store_put(struct store *store, const struct store_name *name, const int *fds, size_t n_fds);

/* Close what has this name; without a kind, what is of its family. */
void store_forget(struct store *store, const struct store_name *name);

/* Begin to hand out all; the next one, borrowed, or NULL. */
void store_rewind(struct store *store);
struct store_item *store_next(struct store *store);
/* It could not be taken: the next one is it once more. */
void store_again(struct store *store);
