/* A hash table of objects that have a node for each table they stand in. The hash is SipHash under a random key
 * of this process, so nobody who chooses a name can choose its bucket. */
#pragma once

#include "proto/list.h"

struct table_node {
	struct list list; /* in its bucket */
	uint64_t hash;
	struct table *table; /* NULL: in none */
};

struct table {
	struct list *buckets;
	size_t n_buckets; /* a power of two, or 0 */
	size_t n;
};

/* A hash of bytes that come one after the other: begin, add, and take it. */
struct hash {
	uint64_t v[4];
	uint64_t tail; /* bytes that do not fill a word yet */
	size_t size;
};

struct hash hash_begin(void);
void hash_add(struct hash *hash, struct bytes data);
void hash_add_number(struct hash *hash, uint64_t number);
uint64_t hash_end(struct hash *hash);
/* Of a number alone. */
uint64_t hash_of_number(uint64_t number);

void table_init(struct table *table);
/* Frees no object; objects that are left are in no table afterwards. */
void table_deinit(struct table *table);

/* The node may be in a zeroed object. Returns 0; or -ENOMEM, with the node in no table. That happens only if the
 * table is empty: a table that cannot grow goes on at its size. */
int table_add(struct table *table, struct table_node *node, uint64_t hash);
void table_remove(struct table_node *node); /* idempotent */

/* The first node with this hash, and the next one after @node, in the order in which they were added; NULL if there
 * is none. The caller compares. */
struct table_node *table_first(const struct table *table, uint64_t hash);
struct table_node *table_next(const struct table_node *node);

#define table_for_each(entry, table, hash_, member)                                                                \
	for (struct table_node *entry##_node = table_first(table, hash_);                                          \
	     entry##_node && ((entry) = container_of(entry##_node, __typeof__(*(entry)), member), true);           \
	     entry##_node = table_next(entry##_node))
