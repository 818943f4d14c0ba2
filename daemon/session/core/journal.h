/* The journal: the cells a session has run, as far back as fits, with their code and how each ended. It belongs
 * to the router, so it survives interpreters. It knows which cells the present state comes from. */
#pragma once

#include "kept.h"

struct cell;
struct entry_record;
struct verdict;

/* @cell has ended. Without memory it is left out. */
void journal_add(struct kept_list *journal, const struct cell *cell, const struct verdict *verdict);
/* The same of a cell that is known already. @written: it is in the ledger. */
void journal_take(struct kept_list *journal, const struct entry_record *record, bool written);
/* A branch starts with the cells before it: those of @from up to number @last. */
void journal_copy(struct kept_list *journal, const struct kept_list *from, uint64_t last);
/* Append the last @n (0 = all) as an array of history records. @at: the live state is the one after that cell.
 * Returns 0 or -ENOMEM. */
int journal_put(struct kept_list *journal, uint64_t at, uint64_t n, msgpack_sbuffer *buffer);
