/* The journal: the cells a session has run, as far back as fits, with their code and how each ended. It belongs
 * to the router, so it survives interpreters. It knows which cells the present state comes from. */
#pragma once

#include "proto/list.h"

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
/* For the next router: write down entries of session @session that are new or have changed; and read them back. */
struct entry_record;
struct ledger;
int journal_write(struct journal *journal, struct ledger *ledger, uint64_t session);
void journal_rewrite(struct journal *journal);
void journal_read(struct journal *journal, const struct entry_record *record);
/* A branch starts with the cells before it: those of @from up to number @last. */
void journal_copy(struct journal *journal, const struct journal *from, uint64_t last);
/* Append the last @n (0 = all) as an array of history records. @at: the live state is the one after that cell.
 * Returns 0 or -ENOMEM. */
int journal_put(struct journal *journal, uint64_t at, uint64_t n, msgpack_sbuffer *buffer);
