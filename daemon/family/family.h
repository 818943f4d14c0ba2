/* Families as they are kept for the next router: what has changed in a round is written down at its end, before
 * anything that was heard leaves its socket and anything that was said goes out. */
#pragma once

#include "session/core/sessions.h"
#include "snapshot.h"
#include "vault/vault.h"

struct families {
	struct sessions *sessions;
	struct snapshot snapshot;
	/* At the start: what the last router has left. */
	struct vault *vault;
	struct list old;
};

void families_init(struct families *families, struct sessions *sessions, struct vault *vault);
void families_deinit(struct families *families);

/* Write down what has changed. */
void families_commit(struct families *families);
/* A point of fault.h, for all that this concerns. */
void families_fault(struct families *families, const char *name);
/* That is done: now do what cannot be undone. */
void families_settle(struct families *families);
