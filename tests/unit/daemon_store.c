/* What the keeper holds: replaced by name, forgotten by name or family, handed out in order whatever happens. */
#include "keeper/store.h"

#include "check.h"

#include <fcntl.h>

static int descriptor(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int put(struct store *store, uint64_t kind, uint64_t family, uint64_t number)
{
	int fd = descriptor();

	CHECK(store_put(store, &(struct store_name){kind, family, number}, &fd, 1) == 0);
	return fd;
}

static void test_names(void)
{
	struct store store;
	int first, other, second;

	store_init(&store);
	first = put(&store, 1, 7, 0);
	other = put(&store, 1, 7, 1);
	second = descriptor();
	CHECK(store_put(&store, &(struct store_name){1, 7, 0}, &second, 1) == 0);
	CHECK(!is_open(first) && is_open(other) && is_open(second));
	store_forget(&store, &(struct store_name){1, 7, 1});
	CHECK(!is_open(other) && is_open(second));
	other = put(&store, 2, 8, 0);
	store_forget(&store, &(struct store_name){.family = 7});
	CHECK(!is_open(second) && is_open(other));
	store_deinit(&store);
	CHECK(!is_open(other));
}

static void test_handing_out(void)
{
	struct store store;

	store_init(&store);
	for (uint64_t i = 0; i < 4; i++)
		(void)put(&store, 1, i, i);
	store_rewind(&store);
	CHECK(store_next(&store)->name.family == 0);
	CHECK(store_next(&store)->name.family == 1);
	store_again(&store);
	CHECK(store_next(&store)->name.family == 1);
	store_forget(&store, &(struct store_name){.family = 1});
	store_forget(&store, &(struct store_name){.family = 2});
	CHECK(store_next(&store)->name.family == 3);
	CHECK(store_next(&store) == NULL);
	(void)put(&store, 1, STORE_BUCKETS - 1, 4);
	(void)put(&store, 1, 2 * STORE_BUCKETS - 1, 4);
	CHECK(store_next(&store)->name.family == STORE_BUCKETS - 1);
	CHECK(store_next(&store)->name.family == 2 * STORE_BUCKETS - 1);
	CHECK(store_next(&store) == NULL);
	store_forget(&store, &(struct store_name){.family = STORE_BUCKETS - 1});
	CHECK(store_next(&store) == NULL);
	store_rewind(&store);
	CHECK(store_next(&store)->name.family == 0);
	store_deinit(&store);
	CHECK(store_next(&store) == NULL);
}

int main(void)
{
	test_names();
	test_handing_out();
	return check_report();
}
