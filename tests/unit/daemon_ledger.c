/* What one router has written the next one reads, up to where the first was stopped. */
#include "check.h"

#include "vault/ledger.h"
#include "vault/records.h"

#include <sys/stat.h>

static int append(struct ledger *ledger, uint64_t cell, const char *text)
{
	const struct code_record record = {.promise = cell, .options = bytes_of(text)};

	return ledger_append(ledger, &code_record_schema, &record);
}

static int begin(struct ledger *ledger)
{
	int r = ledger_renew(ledger);

	return r ? r : ledger_put_in_force(ledger);
}

/* How many records there are: number n of promise n. */
static uint64_t count(const struct ledger *ledger)
{
	_cleanup_(freep) char *text = NULL;
	struct code_record record;
	struct wire_frame frame;
	struct wire_fault fault;
	uint64_t at = 0, n = 0;

	CHECK(ledger_read(ledger, &text) == 0);
	while (ledger_next(ledger, text, &at, &frame)) {
		n++;
		CHECK(wire_decode(&record, &code_record_schema, frame.body, &fault) == 0);
		CHECK(record.promise == n);
	}
	CHECK(at == ledger->size);
	return n;
}

/* As the next router gets it: another descriptor, another mapping. */
static void hand_over(const struct ledger *from, struct ledger *to)
{
	ledger_init(to);
	CHECK(ledger_open(to, dup(from->fd)) == 0);
}

static void test_begun_record_goes(void)
{
	struct ledger ledger, next;

	ledger_init(&ledger);
	CHECK(begin(&ledger) == 0 && append(&ledger, 1, "x = 1") == 0 && append(&ledger, 2, "") == 0);
	/* What is there of a record whose length was never stored. */
	memset(ledger.map + ledger.size + 8, 0x5a, 1000);
	hand_over(&ledger, &next);
	CHECK(next.size == ledger.size && count(&next) == 2);
	CHECK(append(&next, 3, "y") == 0 && count(&next) == 3);
	ledger_deinit(&next);
	/* And a length that leads out of the file. */
	memset(ledger.map + ledger.size, 0x7f, 8);
	hand_over(&ledger, &next);
	CHECK(count(&next) == 2);
	ledger_deinit(&next);
	ledger_deinit(&ledger);
}

static void test_cut(void)
{
	struct ledger ledger, next;
	uint64_t size;

	ledger_init(&ledger);
	CHECK(begin(&ledger) == 0 && append(&ledger, 1, "x") == 0);
	size = ledger.size;
	CHECK(append(&ledger, 7, "not this one") == 0);
	CHECK(ledger_cut(&ledger, size) == 0 && append(&ledger, 2, "y") == 0 && count(&ledger) == 2);
	hand_over(&ledger, &next);
	CHECK(count(&next) == 2);
	ledger_deinit(&next);
	ledger_deinit(&ledger);
}

static void test_it_grows(void)
{
	static char text[40000];
	struct ledger ledger, next;

	memset(text, 'x', sizeof(text) - 1);
	ledger_init(&ledger);
	CHECK(begin(&ledger) == 0 && count(&ledger) == 0);
	for (uint64_t i = 1; i <= 300; i++) {
		text[i % 30] = '\0'; /* any length, aligned or not */
		CHECK(append(&ledger, i, i % 50 ? text : text + 100) == 0);
		text[i % 30] = 'x';
	}
	CHECK(count(&ledger) == 300);
	hand_over(&ledger, &next);
	CHECK(count(&next) == 300 && ledger_is_stale(&next, 0) && ledger_is_stale(&next, next.size / 4));
	CHECK(!ledger_is_stale(&next, next.size / 2) && !ledger_is_stale(&next, next.size));
	CHECK(!ledger_is_stale(&next, 2 * next.size));
	CHECK(ledger_renew(&next) == 0 && count(&next) == 0 && ledger_is_stale(&next, 1));
	CHECK(ledger_put_in_force(&next) == 0 && !ledger_is_stale(&next, 0));
	ledger_deinit(&next);
	ledger_deinit(&ledger);
}

static void test_an_empty_one(void)
{
	struct ledger ledger, next;

	ledger_init(&ledger);
	CHECK(begin(&ledger) == 0);
	hand_over(&ledger, &next);
	CHECK(next.size == 0 && append(&next, 1, "x") == 0 && count(&next) == 1);
	ledger_deinit(&next);
	ledger_deinit(&ledger);
}

static void appended(struct ledger *ledger, uint64_t n, const char *text)
{
	for (uint64_t i = 1; i <= n; i++)
		CHECK(append(ledger, i, text) == 0);
}

/* How many the next router would find. */
static uint64_t inherited(const struct ledger *ledger)
{
	struct ledger next;
	uint64_t n;

	hand_over(ledger, &next);
	n = count(&next);
	ledger_deinit(&next);
	return n;
}

/* The same file says the one thing until it says the other, however often that was begun. */
static void test_renewed(size_t size)
{
	_cleanup_(freep) char *text = calloc(1, size + 1);
	struct ledger ledger;
	struct stat status;

	memset(text, 'x', size);
	ledger_init(&ledger);
	CHECK(ledger_is_stale(&ledger, 0));
	for (uint64_t n = 1; n < 9; n++) {
		CHECK(ledger_renew(&ledger) == 0 && ledger_is_stale(&ledger, 0));
		appended(&ledger, n, text);
		CHECK(ledger_put_in_force(&ledger) == 0 && !ledger_is_stale(&ledger, ledger.size));
		CHECK(inherited(&ledger) == n);
		for (uint64_t attempt = 1; attempt < 4; attempt++) {
			CHECK(ledger_renew(&ledger) == 0);
			appended(&ledger, attempt, text);
		}
		CHECK(inherited(&ledger) == n);
	}
	CHECK(fstat(ledger.fd, &status) == 0 && status.st_blocks * 512 < (off_t)(16 * size + (64 << 10)));
	ledger_deinit(&ledger);
}

int main(void)
{
	test_begun_record_goes();
	test_cut();
	test_it_grows();
	test_an_empty_one();
	test_renewed(10);
	/* What is in force ends where the next may begin. */
	for (size_t size = 16300; size < 16384; size++)
		test_renewed(size);
	return check_report();
}
