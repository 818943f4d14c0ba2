/* Hash tables. A bucket holds one node on average, because the table doubles when it is full and nobody outside
 * this process knows the key of the hash. SipHash-2-4, by Aumasson and Bernstein. */
#include "table.h"

#include "log.h"

#include <sys/random.h>

#define BUCKETS_FIRST 64

/* ---- the hash ---- */

static uint64_t rotated(uint64_t word, unsigned by)
{
	return word << by | word >> (64 - by);
}

static void mix(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotated(v[1], 13) ^ v[0];
	v[3] = rotated(v[3], 16) ^ v[2];
	v[0] = rotated(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotated(v[1], 17) ^ v[2];
	v[3] = rotated(v[3], 21) ^ v[0];
	v[2] = rotated(v[2], 32);
}

static void word_add(struct hash *hash, uint64_t word)
{
	hash->v[3] ^= word;
	mix(hash->v);
	mix(hash->v);
	hash->v[0] ^= word;
}

/* Without random words the process does not begin: a hash that somebody can predict is useless. */
static const uint64_t *key(void)
{
	static uint64_t words[2];
	static bool drawn;

	if (!drawn && getrandom(words, sizeof(words), 0) != sizeof(words)) {
		log_error(NULL, "no random words: %s", strerror(errno));
		abort();
	}
	drawn = true;
	return words;
}

struct hash hash_begin(void)
{
	const uint64_t *words = key();

	return (struct hash){.v = {words[0] ^ 0x736f6d6570736575ULL, words[1] ^ 0x646f72616e646f6dULL,
				   words[0] ^ 0x6c7967656e657261ULL, words[1] ^ 0x7465646279746573ULL}};
}

void hash_add(struct hash *hash, struct bytes data)
{
	for (size_t i = 0; i < data.size; i++) {
		hash->tail |= (uint64_t)(uint8_t)data.data[i] << (8 * (hash->size % 8));
		if (++hash->size % 8 == 0) {
			word_add(hash, hash->tail);
			hash->tail = 0;
		}
	}
}

void hash_add_number(struct hash *hash, uint64_t number)
{
	hash_add(hash, (struct bytes){.data = (const char *)&number, .size = sizeof(number)});
}

uint64_t hash_end(struct hash *hash)
{
	word_add(hash, hash->tail | (uint64_t)(uint8_t)hash->size << 56);
	hash->v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		mix(hash->v);
	return hash->v[0] ^ hash->v[1] ^ hash->v[2] ^ hash->v[3];
}

uint64_t hash_of_number(uint64_t number)
{
	struct hash hash = hash_begin();

	hash_add_number(&hash, number);
	return hash_end(&hash);
}

/* ---- tables ---- */

void table_init(struct table *table)
{
	*table = (struct table){.n = 0};
}

static struct list *bucket_of(const struct table *table, uint64_t hash)
{
	return &table->buckets[hash & (table->n_buckets - 1)];
}

void table_deinit(struct table *table)
{
	struct table_node *node;

	for (size_t i = 0; i < table->n_buckets; i++)
		list_for_each (node, &table->buckets[i], list)
			table_remove(node);
	free(table->buckets);
	table_init(table);
}

static int table_grow(struct table *table)
{
	size_t n = table->n_buckets ? 2 * table->n_buckets : BUCKETS_FIRST;
	struct list *old = table->buckets, *fresh = reallocarray(NULL, n, sizeof(*fresh));
	size_t n_old = table->n_buckets;
	struct table_node *node;

	if (!fresh)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		list_init(&fresh[i]);
	table->buckets = fresh;
	table->n_buckets = n;
	for (size_t i = 0; i < n_old; i++)
		list_for_each (node, &old[i], list)
			list_move(bucket_of(table, node->hash), &node->list);
	free(old);
	return 0;
}

int table_add(struct table *table, struct table_node *node, uint64_t hash)
{
	if (table->n >= table->n_buckets && table_grow(table) && table->n_buckets == 0)
		return -ENOMEM;
	node->hash = hash;
	node->table = table;
	list_init(&node->list);
	list_append(bucket_of(table, hash), &node->list);
	table->n++;
	return 0;
}

void table_remove(struct table_node *node)
{
	if (!node->table)
		return;
	list_remove(&node->list);
	node->table->n--;
	node->table = NULL;
}

static struct table_node *from(const struct list *bucket, const struct list *at, uint64_t hash)
{
	for (; at != bucket; at = at->next) {
		struct table_node *node = container_of((struct list *)at, struct table_node, list);

		if (node->hash == hash)
			return node;
	}
	return NULL;
}

struct table_node *table_first(const struct table *table, uint64_t hash)
{
	const struct list *bucket = table->n_buckets ? bucket_of(table, hash) : NULL;

	return bucket ? from(bucket, bucket->next, hash) : NULL;
}

struct table_node *table_next(const struct table_node *node)
{
	return from(bucket_of(node->table, node->hash), node->list.next, node->hash);
}
