/* The kinds of things that a router stores with the keeper for the next router. The keeper knows only one of them:
 * it leaves the ledger of promises to the next keeper. */
#pragma once

#include "proto/base.h"

/* Of everything that one router stores and writes for the next. It goes up when a router of this build could not go
 * on with what one of the last build has left, or the other way round: fields of records that are optional may come
 * and go without. */
#ifndef VAULT_LAYOUT
#define VAULT_LAYOUT 7
#endif

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
	VAULT_AUDIT_LOG,    /* the ring of audit/ring.h; what wakes its scribe */
	VAULT_PAST,	    /* the file of session/past.h, if it is on no disk */
};

/* What the keeper knows a kind by: it compares them, and no more, so they can say of what layout they are. */
uint64_t vault_kind_of(enum vault_kind kind);
/* Whether what was stored under it is of this layout. */
bool vault_kind_is_ours(uint64_t kind);
