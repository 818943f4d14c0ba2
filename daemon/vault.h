/* The router's side of the keeper: what it stores there for the next router, and what the last one has stored.
 *
 * A family is a warden with its sessions and interpreters, under one number. Descriptors are stored in the order in
 * which they stand here. */
#pragma once

#include "keeper.h"
#include "ledger.h"

/* Of everything that one router stores and writes for the next. It goes up when a router of this build could not go
 * on with what one of the last build has left, or the other way round: fields of records that are optional may come
 * and go without. */
#ifndef VAULT_LAYOUT
#define VAULT_LAYOUT 6
#endif

enum {
	_VAULT_E_SUCCESS,
	VAULT_E_LAYOUT, /* what is stored is of another layout than ours */
};

enum vault_kind {
	VAULT_PROMISES = 1, /* the ledger of promises, which the next keeper is to have too */
	VAULT_FAMILY,	    /* a family's ledger */
	VAULT_WARDEN,	    /* its control pair; its workspace; its pidfd, where there are any */
	VAULT_SESSION,	    /* by number: the logs of stdout and stderr */
	VAULT_TASK,	    /* by number of its session: the file that is saved into or loaded from */
	VAULT_INTERPRETER,  /* by serial: channel, and of a live one stdout, stderr, buffer; then, until it is known
			     * to  have them, its own ends of the same */
	VAULT_SETTINGS,	    /* the text of those in force */
	VAULT_BREAKER,	    /* the page of breaker.h */
};

/* To the keeper, which always reads: what must not fail is waited for. Returns 0, CHANNEL_E_EOF or -errno. */
int keeper_tell(const struct keeper_message *message, const int *fds, size_t n_fds);

/* What the keeper knows a kind by: it compares them, and no more, so they can say of what layout they are. */
uint64_t vault_kind_of(enum vault_kind kind);

/* When this returns 0 the descriptors outlive us. They stay the caller's. Returns 0 or -errno. */
int vault_store(enum vault_kind kind, uint64_t family, uint64_t number, const int *fds, size_t n_fds);
/* Put in force what it has been renewed with, of a ledger that is stored once and then stays. Returns 0 or -errno.
 */
int vault_store_ledger(enum vault_kind kind, uint64_t family, struct ledger *ledger);
void vault_forget(enum vault_kind kind, uint64_t family, uint64_t number);
void vault_forget_family(uint64_t family);

/* One thing that the last router has stored. */
struct heirloom {
	struct list node; /* in its shelf */
	enum vault_kind kind;
	uint64_t family, number;
	size_t n_fds;
	int fds[STORE_FDS_MAX]; /* what is taken of it becomes -1 */
	bool taken;
};

/* All that it has stored, on shelves as in the store: by family, since there may be a thousand of them. */
struct heritage {
	struct list shelves[STORE_SHELVES];
};

void heritage_init(struct heritage *heritage);
/* Everything that the keeper holds for us, up to its last word. @listenerp: the listening socket. @endp: how the
 * last router ended. Returns 0, VAULT_E_LAYOUT or -errno. */
int heritage_receive(struct heritage *heritage, int *listenerp, enum router_end *endp);
/* NULL if there is none. */
struct heirloom *heritage_find(struct heritage *heritage, enum vault_kind kind, uint64_t family, uint64_t number);
/* Close what nobody has taken, and have the keeper forget it. */
void heritage_settle(struct heritage *heritage);
