/* Hash tables: what is in one is found, in order, while it grows and when it shrinks. */
#include "check.h"

#include "base/table.h"

#define N 5000

struct thing {
	struct table_node node;
	uint64_t number;
};

static struct thing things[N];

static struct thing *find(const struct table *table, uint64_t number)
{
	struct thing *thing;

	table_for_each (thing, table, hash_of_number(number), node)
		if (thing->number == number)
			return thing;
	return NULL;
}

static void test_found(void)
{
	struct table table;

	table_init(&table);
	CHECK(!find(&table, 0));
	for (uint64_t i = 0; i < N; i++) {
		things[i].number = i;
		CHECK(table_add(&table, &things[i].node, hash_of_number(i)) == 0);
	}
	for (uint64_t i = 0; i < N; i++)
		CHECK(find(&table, i) == &things[i]);
	CHECK(!find(&table, N) && table.n == N && table.n_buckets >= N);
	for (uint64_t i = 0; i < N; i += 2) {
		table_remove(&things[i].node);
		table_remove(&things[i].node);
	}
	for (uint64_t i = 0; i < N; i++)
		CHECK(find(&table, i) == (i % 2 ? &things[i] : NULL));
	CHECK(table.n == N / 2);
	table_deinit(&table);
	CHECK(!things[1].node.table && !find(&table, 1));
}

static void test_same_hash(void)
{
	struct table table;
	struct thing *thing;
	uint64_t n = 0;

	table_init(&table);
	for (uint64_t i = 0; i < 100; i++) {
		things[i].number = i;
		CHECK(table_add(&table, &things[i].node, 7) == 0);
	}
	table_for_each (thing, &table, 7, node)
		CHECK(thing->number == n++);
	CHECK(n == 100 && !table_first(&table, 7 + 64));
	table_deinit(&table);
}

static uint64_t hash_of(const char *text, size_t cut)
{
	struct hash hash = hash_begin();

	hash_add(&hash, (struct bytes){.data = text, .size = cut});
	hash_add(&hash, (struct bytes){.data = text + cut, .size = strlen(text) - cut});
	return hash_end(&hash);
}

/* However it is cut up, and by its length as well. */
static void test_hash(void)
{
	const char *text = "a session, a user and a key";

	for (size_t cut = 1; cut < strlen(text); cut++)
		CHECK(hash_of(text, cut) == hash_of(text, 0));
	CHECK(hash_of(text, 0) != hash_of(text + 1, 0));
	CHECK(hash_of("", 0) != hash_of("\1", 0) && hash_of_number(1) != hash_of_number(2));
}

int main(void)
{
	test_found();
	test_same_hash();
	test_hash();
	return check_report();
}
