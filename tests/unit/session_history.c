/* The tree of checkpoints, and the journal of cells. */
#include "check.h"
#include "fakes/clock.h"

#include "promise/cell.h"
#include "session/core/history.h"
#include "session/core/journal.h"
#include "vault/ledger.h"
#include "vault/records.h"

#include <stdio.h>
#include <string.h>

/* ---- checkpoints ---- */

/* Never looked into. */
static struct interpreter *of(uintptr_t n)
{
	return (struct interpreter *)(n * 64);
}

static struct checkpoint *saved(struct history *history, uint64_t cell)
{
	fake_now += 1000000;
	history->saved = false;
	return history_add(history, of(cell), cell);
}

static void empty(struct history *history)
{
	struct checkpoint *checkpoint;

	list_for_each (checkpoint, &history->checkpoints, node)
		history_remove(history, checkpoint);
	CHECK(history->n_automatic == 0 && history->n_named == 0 && !history->base);
	CHECK(history_age(history) <= 0);
}

static bool back_is(const struct history *history, uint64_t n, const struct checkpoint *expected)
{
	struct checkpoint *target;

	return history_back(history, n, &target) && target == expected;
}

static bool no_way_back(const struct history *history, uint64_t n)
{
	struct checkpoint *target;

	return !history_back(history, n, &target);
}

static void test_back(void)
{
	struct history history;
	struct checkpoint *one, *two, *three;

	history_init(&history);
	CHECK(back_is(&history, 0, NULL) && no_way_back(&history, 1));
	one = saved(&history, 1);
	two = saved(&history, 2);
	CHECK(back_is(&history, 0, two) && back_is(&history, 1, one) && back_is(&history, 2, NULL));
	CHECK(no_way_back(&history, 3));
	/* A cell has run since: the state before it is base's. */
	history.saved = false;
	CHECK(back_is(&history, 1, two) && back_is(&history, 2, one));
	/* After a restore it goes back along what happened. */
	history_rebase(&history, one);
	three = saved(&history, 3);
	CHECK(three->parent == one && back_is(&history, 1, one) && back_is(&history, 2, NULL));
	CHECK(history_age(&history) > 1.9 && history_age(&history) < 2.1);
	empty(&history);
}

/* A state that is forgotten is not passed over in silence. */
static void test_severed(void)
{
	struct history history;
	struct checkpoint *one, *two, *three;

	history_init(&history);
	one = saved(&history, 1);
	two = saved(&history, 2);
	three = saved(&history, 3);
	history_remove(&history, two);
	CHECK(three->parent == one && three->severed && no_way_back(&history, 1) && back_is(&history, 0, three));
	/* The base itself: its state goes on to live, as nobody's. */
	history_remove(&history, three);
	CHECK(history.base == one && !history.saved && history.severed && no_way_back(&history, 1));
	CHECK(!history_of(&history, of(3)) && history_of(&history, of(1)) == one);
	three = saved(&history, 4);
	CHECK(three->severed && no_way_back(&history, 1));
	empty(&history);
}

static void test_names(void)
{
	static const char long_name[CHECKPOINT_NAME_MAX + 1] = {[0 ... CHECKPOINT_NAME_MAX] = 'a'};
	struct history history;
	struct checkpoint *one, *two;

	history_init(&history);
	one = saved(&history, 7);
	two = saved(&history, 8);
	history_name(&history, one, BYTES("8"));
	CHECK(history.n_named == 1 && history.n_automatic == 1);
	/* A name comes before a number. */
	CHECK(history_find(&history, BYTES("8")) == one && history_find(&history, BYTES("7")) == one);
	history_name(&history, one, BYTES("seven"));
	CHECK(history.n_named == 1 && history_find(&history, BYTES("8")) == two);
	history_rebase(&history, one);
	CHECK(history_find(&history, BYTES("8")) != saved(&history, 8)); /* the newest */
	CHECK(history_find(&history, BYTES("8"))->parent == one);
	CHECK(!history_find(&history, BYTES("9")) && !history_find(&history, BYTES("")));
	CHECK(!history_find(&history, BYTES("-8")) && !history_find(&history, BYTES("8x")));
	CHECK(!history_find(&history, BYTES("99999999999999999999999999")));
	empty(&history);
	CHECK(checkpoint_name_valid(BYTES("a~!")) && !checkpoint_name_valid(BYTES("")));
	CHECK(!checkpoint_name_valid(BYTES("a b")) && !checkpoint_name_valid(BYTES("\x7f")));
	CHECK(checkpoint_name_valid((struct bytes){.data = long_name, .size = CHECKPOINT_NAME_MAX}));
	CHECK(!checkpoint_name_valid((struct bytes){.data = long_name, .size = CHECKPOINT_NAME_MAX + 1}));
}

static void test_excess(void)
{
	struct history history;
	struct checkpoint *one, *two, *three, *four;

	history_init(&history);
	one = saved(&history, 1);
	two = saved(&history, 2);
	three = saved(&history, 3);
	history_rebase(&history, one);
	four = saved(&history, 4);
	CHECK(!history_excess(&history, 4, 0));
	/* First what the live state does not come from, the oldest of it. */
	CHECK(history_excess(&history, 3, 0) == two);
	history_name(&history, two, BYTES("kept"));
	CHECK(!history_excess(&history, 3, 0) && history_excess(&history, 2, 0) == three);
	/* A name does not help against memory; to be the base does. */
	two->memory = four->memory = 10;
	CHECK(history_memory(&history) == 20 && !history_excess(&history, 9, 20));
	CHECK(history_excess(&history, 9, 19) == two);
	history_remove(&history, two);
	history_remove(&history, three);
	CHECK(history_excess(&history, 9, 5) == one);
	history_remove(&history, one);
	CHECK(!history_excess(&history, 9, 5) && history_excess(&history, 0, 0) == NULL);
	empty(&history);
}

/* ---- the journal ---- */

static void ran(struct kept_list *journal, uint64_t number, uint64_t after, struct bytes code)
{
	const struct cell cell = {.number = number, .after = after, .options.code = code};
	const struct verdict verdict = {.returncode = (int64_t)number, .cause = number == 2 ? "error" : NULL};

	journal_add(journal, &cell, &verdict);
}

/* "1 2- 4": the cells that it tells, those that are undone with a dash. */
static const char *told(struct kept_list *journal, uint64_t at, uint64_t n)
{
	static char text[256];
	struct history_record record;
	struct wire_fault fault;
	msgpack_sbuffer buffer;
	struct bytes item;
	size_t cursor = 0, size = 0;

	text[0] = '\0';
	msgpack_sbuffer_init(&buffer);
	CHECK(journal_put(journal, at, n, &buffer) == 0);
	while (wire_next(wire_bytes(&buffer), &cursor, &item)) {
		CHECK(wire_decode(&record, &history_record_schema, item, &fault) == 0);
		size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%llu%s", size ? " " : "",
					 (unsigned long long)record.cell, record.undone ? "-" : "");
	}
	msgpack_sbuffer_destroy(&buffer);
	return text;
}

static void test_journal(void)
{
	struct kept_list journal, branch;

	kept_init(&journal);
	CHECK(!strcmp(told(&journal, 0, 0), ""));
	ran(&journal, 1, 0, BYTES("x"));
	ran(&journal, 2, 1, BYTES("y"));
	ran(&journal, 3, 2, BYTES("z"));
	ran(&journal, 4, 1, BYTES("u")); /* after a restore of 1 */
	CHECK(!strcmp(told(&journal, 4, 0), "1 2- 3- 4") && !strcmp(told(&journal, 3, 0), "1 2 3 4-"));
	CHECK(!strcmp(told(&journal, 0, 0), "1- 2- 3- 4-") && !strcmp(told(&journal, 4, 2), "3- 4"));
	CHECK(!strcmp(told(&journal, 4, 99), "1 2- 3- 4"));
	kept_init(&branch);
	journal_copy(&branch, &journal, 3);
	ran(&branch, 4, 3, BYTES("v"));
	CHECK(!strcmp(told(&branch, 4, 0), "1 2 3 4"));
	kept_deinit(&branch);
	kept_deinit(&journal);
}

/* Old entries go, by number and by size; a long code is cut between two characters. */
static void test_journal_bounds(void)
{
	static char code[(64 << 10) + 2];
	struct kept_list journal;

	kept_init(&journal);
	for (uint64_t n = 1; n <= 1003; n++)
		ran(&journal, n, n - 1, BYTES("x"));
	CHECK(journal.n == 1000 && journal.size == 1000 && !strcmp(told(&journal, 1003, 1), "1003"));
	memset(code, 'a', sizeof(code));
	code[(64 << 10) - 1] = '\xc3';
	code[64 << 10] = '\xa9';
	ran(&journal, 1004, 1003, (struct bytes){.data = code, .size = sizeof(code)});
	CHECK(journal.size == 999 + (64 << 10) - 1);
	for (uint64_t n = 1005; n <= 1030; n++)
		ran(&journal, n, n - 1, (struct bytes){.data = code, .size = (64 << 10) - 1});
	CHECK(journal.size <= 1 << 20 && journal.n == 16);
	CHECK(!strcmp(told(&journal, 1030, 1), "1030"));
	kept_deinit(&journal);
}

/* What is written down for the next router is written once, and comes back as it was. */
static void test_journal_kept(void)
{
	const struct entry_record record = {.session = 1,
					    .cell = 1,
					    .returncode = 3,
					    .duration_ms = 2,
					    .cause = BYTES("signal 11"),
					    .size = 100,
					    .code = BYTES("x")};
	struct kept_list journal;

	kept_init(&journal);
	journal_take(&journal, &record, true);
	CHECK(!strcmp(told(&journal, 1, 0), "1") && journal.n == 1 &&
	      journal.size == strlen("x"
				     "signal 11"));
	/* It is written already: the ledger, which is none, is not asked. */
	CHECK(kept_write(&journal, &entry_record_schema, NULL, 1) == 0);
	kept_deinit(&journal);
}

int main(void)
{
	test_back();
	test_severed();
	test_names();
	test_excess();
	test_journal();
	test_journal_bounds();
	test_journal_kept();
	return check_report();
}
