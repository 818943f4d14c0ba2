/* The kinds of things that a router stores with the keeper for the next router. The keeper knows only one of
 * them: it hands the ledger of promises to the next keeper. */
#pragma once

#include "proto/base.h"

/* The layout of everything that one router stores and writes down for the next. Raise it if a router of this
 * build could not read the records of the last build, or the other way round. Optional fields of records
 * may come and go without. */
#ifndef VAULT_LAYOUT
#define VAULT_LAYOUT 20
#endif

enum vault_kind {
	VAULT_PROMISES = 1, /* the ledger of promises, for the next keeper as well */
	VAULT_FAMILY,	    /* a family's ledger */
	VAULT_WARDEN,	    /* its control pair; its workspace; its pidfd, if the kernel has them */
	VAULT_SESSION,	    /* by number: the logs of stdout and stderr */
	VAULT_TASK,	    /* by number of its session: the file of a save or load */
	VAULT_INTERPRETER,  /* by serial: its channel; of a live one also stdout, stderr, buffer; and the ends that
			       it gets, until the router knows that it has them */
	VAULT_SETTINGS,	    /* the text of the settings in force */
	VAULT_BREAKER,	    /* the page of breaker.h */
	VAULT_PAST = 10,    /* the file of session/core/past.h, if it is on no disk */
	VAULT_COUNTERS,	    /* the page of session/core/counters.h */
};

/* The number by which the keeper knows a kind. The keeper only compares numbers, so they can include the layout. */
uint64_t vault_kind_of(enum vault_kind kind);
/* Whether something stored under @kind is of this layout. */
bool vault_kind_is_ours(uint64_t kind);
