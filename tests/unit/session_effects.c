/* The effects of a session: which are told, and which are forgotten first. And the done calls of a family. */
#include "check.h"

#include "session/core/effects.h"

#include "vault/records.h"
#include "warden/done_calls.h"

#include "proto/message.h"

#include <stdio.h>
#include <string.h>

static char told[8192];

/* "called a 1, ...; N more" */
static const char *tell(const struct effects *effects, uint64_t cell)
{
	msgpack_sbuffer buffer;
	struct effect effect;
	struct wire_fault fault;
	struct bytes record;
	size_t cursor = 0;
	uint64_t more;

	msgpack_sbuffer_init(&buffer);
	told[0] = '\0';
	more = effects_put(effects, cell, EFFECTS_FOREVER, &buffer);
	while (wire_next(wire_bytes(&buffer), &cursor, &record)) {
		size_t used = strlen(told);

		CHECK(wire_decode(&effect, &effect_schema, record, &fault) == 0);
		snprintf(told + used, sizeof(told) - used, "%.*s %.*s %u, ", (int)effect.act.size, effect.act.data,
			 (int)effect.target.size, effect.target.data, (unsigned)effect.cell);
	}
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%u more", (unsigned)more);
	msgpack_sbuffer_destroy(&buffer);
	return told;
}

static void test_order(void)
{
	struct effects effects = {.dropped = 0};
	const struct effect_record wrote = {.when = EFFECTS_DURING(2), .count = 1, .act = 3, .target = BYTES("/a")};

	kept_init(&effects.entries);
	effects_call(&effects, false, false, "look()", EFFECTS_DURING(1));
	effects_add(&effects, &wrote, true);
	effects_call(&effects, false, true, "pay()", EFFECTS_DURING(2));
	effects_call(&effects, true, true, "pay()", EFFECTS_DURING(3));
	effects_call(&effects, false, true, "pay()", EFFECTS_DURING(3));
	CHECK(!strcmp(tell(&effects, 0),
		      "called pay() 2, maybe_called pay() 3, wrote /a 2, called look() 1, 0 more"));
	CHECK(!strcmp(tell(&effects, 1), "called pay() 2, maybe_called pay() 3, wrote /a 2, 0 more"));
	CHECK(!strcmp(tell(&effects, 3), "0 more"));
	kept_deinit(&effects.entries);
}

static void test_bound(void)
{
	struct effects effects = {.dropped = 0};
	char text[32];

	kept_init(&effects.entries);
	effects_call(&effects, false, true, "pay()", EFFECTS_DURING(1));
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "look(n=%d)", i);
		effects_call(&effects, false, false, text, EFFECTS_DURING(2));
	}
	CHECK(effects.entries.n <= 2000 && effects.entries.size <= (size_t)256 << 10);
	CHECK(!strncmp(tell(&effects, 0), "called pay() 1, called look(", 28));
	CHECK(strstr(told, ", 4937 more"));
	kept_deinit(&effects.entries);
}

/* ---- done calls ---- */

static struct past_calls now;

static bool in_past(void *userdata, size_t place)
{
	(void)userdata;
	return past_calls_have(&now, place);
}

static size_t add(struct done_calls *done_calls, uint8_t which)
{
	char where[] = "s", text[] = "pay()";
	struct done_call done_call = {.digest = {which}, .session = 1, .cell = which, .where = where, .text = text};
	size_t place = 0;

	CHECK(done_calls_place(&place, done_calls, in_past, NULL) == 0 && place < DONE_CALLS_MAX);
	if (done_calls->all[place].serial) {
		past_calls_forget(&now, place);
		done_calls_forget(done_calls, place);
	}
	CHECK(done_calls_add(done_calls, place, &done_call) == 0);
	past_calls_add(&now, place);
	return place;
}

static const struct done_call *find(const struct done_calls *done_calls, const struct past_calls *past,
				    uint8_t which, bool *unsure)
{
	const uint8_t digest[SHA256_SIZE] = {which};

	return done_calls_find(unsure, done_calls, past, digest);
}

static void test_done_calls(void)
{
	struct done_calls done_calls = {.all = NULL};
	struct past_calls before, kept;
	bool unsure;

	now = (struct past_calls){.forgotten = 0};
	CHECK(!find(&done_calls, &now, 1, &unsure) && !unsure);
	add(&done_calls, 1);
	before = now;
	add(&done_calls, 2);
	CHECK(!find(&done_calls, &now, 1, &unsure) && !find(&done_calls, &now, 2, &unsure));
	now = before; /* undone */
	CHECK(find(&done_calls, &now, 2, &unsure) && !unsure && !find(&done_calls, &now, 1, &unsure));
	past_calls_read(&kept, past_calls_bytes(&now));
	CHECK(!memcmp(&kept, &now, sizeof(now)));
	/* What is in the past is forgotten before what was undone. */
	for (int i = 0; i < DONE_CALLS_MAX + 10; i++)
		add(&done_calls, 3);
	CHECK(done_calls.n == DONE_CALLS_MAX && done_calls.forgotten == 12);
	CHECK(find(&done_calls, &now, 2, &unsure) && !unsure);
	CHECK(!find(&done_calls, &now, 9, &unsure) && !unsure);
	/* Who goes back behind what is forgotten knows nothing for certain. */
	now = (struct past_calls){.forgotten = 0};
	CHECK(!find(&done_calls, &now, 9, &unsure) && unsure);
	CHECK(find(&done_calls, &now, 3, &unsure));
	CHECK(!past_calls_bytes(&now).data);
	done_calls_deinit(&done_calls);
	CHECK(done_calls.n == 0 && done_calls.size == 0);
}

int main(void)
{
	test_order();
	test_bound();
	test_done_calls();
	return check_report();
}
