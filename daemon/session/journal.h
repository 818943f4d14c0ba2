/* The cells a session has run, as far back as fits: their code and how each ended. It is the router's, so it
 * survives whatever happens to interpreters, and knows which cells the state of now has behind it. */
#pragma once

#include "base/list.h"

#include "proto/wire.h"

struct cell;
struct verdict;

struct journal {
	struct list entries; /* oldest first */
	size_t n, size;
	bool due; /* some are to be written down for the next router */
};

void journal_init(struct journal *journal);
void journal_deinit(struct journal *journal);

/* @cell has ended. Without memory it is left out. */
void journal_add(struct journal *journal, const struct cell *cell, const struct verdict *verdict);
/* For the next router: write down for session @session what has not been, or has to be once more; and read it back.
 */
struct entry_record;
struct ledger;
int journal_write(struct journal *journal, struct ledger *ledger, uint64_t session);
void journal_rewrite(struct journal *journal);
void journal_read(struct journal *journal, const struct entry_record *record);
/* A branch remembers what led to it: the cells of @from up to number @last. */
void journal_copy(struct journal *journal, const struct journal *from, uint64_t last);
/* Append the last @n (0 = all) as an array of history records. @at: the live state is the one after that cell.
 * Returns 0 or -ENOMEM. */
int journal_put(struct journal *journal, uint64_t at, uint64_t n, msgpack_sbuffer *buffer);
