/* The router's side of the vault: it stores descriptors there, which the keeper holds for the next router, and
 * receives those of the last one.
 *
 * A family is a warden with its sessions and interpreters, under one number. Descriptors are stored in the order in
 * which they stand here. */
#pragma once

#include "keeper/keeper.h"
#include "keeper/kind.h"
#include "ledger.h"

enum {
	_VAULT_E_SUCCESS,
	VAULT_E_LAYOUT, /* the vault is of another layout than ours */
};

/* When this returns 0 the descriptors outlive us. They stay the caller's. Returns 0 or -errno. */
int vault_store(enum vault_kind kind, uint64_t family, uint64_t number, const int *fds, size_t n_fds);
/* Put the new version of a ledger in force. Its file is stored once and then stays. Returns 0 or -errno. */
int vault_store_ledger(enum vault_kind kind, uint64_t family, struct ledger *ledger);
void vault_forget(enum vault_kind kind, uint64_t family, uint64_t number);
void vault_forget_family(uint64_t family);

/* One item that the last router has stored. */
struct vault_item {
	struct list node; /* in its bucket */
	enum vault_kind kind;
	uint64_t family, number;
	size_t n_fds;
	int fds[STORE_FDS_MAX]; /* -1 once taken */
	bool taken;
};

/* All its items, in buckets by family as in the keeper, since there may be a thousand families. */
struct vault {
	struct list buckets[STORE_BUCKETS];
};

void vault_init(struct vault *vault);
/* Receive everything that the keeper holds for us, until it says that this was all. @listenerp: the listening
 * socket. @endp: how the last router ended. Returns 0, VAULT_E_LAYOUT or -errno. */
int vault_receive(struct vault *vault, int *listenerp, enum router_end *endp);
/* NULL if there is none. */
struct vault_item *vault_find(struct vault *vault, enum vault_kind kind, uint64_t family, uint64_t number);
/* Close the items that nobody has taken, and have the keeper forget them. */
void vault_settle(struct vault *vault);
