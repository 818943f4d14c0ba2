/* A list of records of a family's ledger, each of which is written there once. An entry is the record itself, with
 * its bytes. All such records begin with the number of their session. */
#pragma once

#include "proto/list.h"
#include "proto/wire.h"

struct kept {
	struct list node;
	size_t size;  /* of the bytes */
	bool written; /* to the ledger */
	bool mark;    /* the owner's */
	_Alignas(max_align_t) char record[];
};

struct kept_list {
	struct list all; /* oldest first */
	size_t n, size;
	bool due; /* some are to be written for the next router */
};

void kept_init(struct kept_list *list);
void kept_deinit(struct kept_list *list);

/* Append a copy. @written: it is in the ledger. NULL when out of memory. */
struct kept *kept_add(struct kept_list *list, const struct wire_schema *schema, const void *record, bool written);
void kept_drop(struct kept_list *list, struct kept *kept);

/* Write those that are not, as records of @session. Returns 0 or -errno. */
struct ledger;
int kept_write(struct kept_list *list, const struct wire_schema *schema, struct ledger *ledger, uint64_t session);
/* All are due again. */
void kept_rewrite(struct kept_list *list);
