/* The router's side of the keeper: what it stores there for the next router, and what the last one has stored.
 *
 * A family is a warden with its sessions and interpreters, under one number. Descriptors are stored in the order in
 * which they stand here. */
#pragma once

#include "keeper/keeper.h"
#include "keeper/kind.h"
#include "ledger.h"

enum {
	_VAULT_E_SUCCESS,
	VAULT_E_LAYOUT, /* what is stored is of another layout than ours */
};

/* When this returns 0 the descriptors outlive us. They stay the caller's. Returns 0 or -errno. */
int vault_store(enum vault_kind kind, uint64_t family, uint64_t number, const int *fds, size_t n_fds);
/* Put in force what it has been renewed with, of a ledger that is stored once and then stays. Returns 0 or -errno.
 */
int vault_store_ledger(enum vault_kind kind, uint64_t family, struct ledger *ledger);
void vault_forget(enum vault_kind kind, uint64_t family, uint64_t number);
void vault_forget_family(uint64_t family);

/* One thing that the last router has stored. */
struct vault_item {
	struct list node; /* in its bucket */
	enum vault_kind kind;
	uint64_t family, number;
	size_t n_fds;
	int fds[STORE_FDS_MAX]; /* what is taken of it becomes -1 */
	bool taken;
};

/* All that it has stored, on buckets as in the store: by family, since there may be a thousand of them. */
struct vault {
	struct list buckets[STORE_BUCKETS];
};

void vault_init(struct vault *vault);
/* Everything that the keeper holds for us, up to its last word. @listenerp: the listening socket. @endp: how the
 * last router ended. Returns 0, VAULT_E_LAYOUT or -errno. */
int vault_receive(struct vault *vault, int *listenerp, enum router_end *endp);
/* NULL if there is none. */
struct vault_item *vault_find(struct vault *vault, enum vault_kind kind, uint64_t family, uint64_t number);
/* Close what nobody has taken, and have the keeper forget it. */
void vault_settle(struct vault *vault);
