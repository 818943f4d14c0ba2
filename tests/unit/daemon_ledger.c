/* What one router has written the next one reads, up to where the first was stopped. */
#include "check.h"

#include "ledger.h"
#include "records.h"

#include <sys/stat.h>

static int append(struct ledger *ledger, uint64_t cell, const char *text)
{
	const struct code_record record = {.promise = cell, .code = bytes_of(text)};

	return ledger_append(ledger, &code_record_schema, &record);
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
static void hand_over(struct ledger *from, struct ledger *to)
{
	ledger_init(to);
	CHECK(ledger_open(to, dup(from->fd)) == 0);
}

static void test_begun_record_goes(void)
{
	struct ledger ledger, next;

	ledger_init(&ledger);
	CHECK(ledger_create(&ledger) == 0 && append(&ledger, 1, "x = 1") == 0 && append(&ledger, 2, "") == 0);
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
	CHECK(ledger_create(&ledger) == 0 && append(&ledger, 1, "x") == 0);
	size = ledger.size;
	CHECK(append(&ledger, 7, "not this one") == 0);
	ledger_cut(&ledger, size);
	CHECK(append(&ledger, 2, "y") == 0 && count(&ledger) == 2);
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
	CHECK(ledger_create(&ledger) == 0 && count(&ledger) == 0);
	for (uint64_t i = 1; i <= 300; i++) {
		text[i % 30] = '\0'; /* any length, aligned or not */
		CHECK(append(&ledger, i, i % 50 ? text : text + 100) == 0);
		text[i % 30] = 'x';
	}
	CHECK(count(&ledger) == 300);
	hand_over(&ledger, &next);
	CHECK(count(&next) == 300 && ledger_is_stale(&next, 0));
	CHECK(ledger_create(&next) == 0 && count(&next) == 0 && !ledger_is_stale(&next, 0));
	CHECK(ledger_is_stale(&next, 1 << 20));
	ledger_deinit(&next);
	ledger_deinit(&ledger);
}

static void test_an_empty_one(void)
{
	struct ledger ledger, next;

	ledger_init(&ledger);
	CHECK(ledger_create(&ledger) == 0);
	hand_over(&ledger, &next);
	CHECK(next.size == 0 && append(&next, 1, "x") == 0 && count(&next) == 1);
	ledger_deinit(&next);
	ledger_deinit(&ledger);
}

int main(void)
{
	test_begun_record_goes();
	test_cut();
	test_it_grows();
	test_an_empty_one();
	return check_report();
}
