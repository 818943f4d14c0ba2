/* The effects of a session: which are told, and which are forgotten first. And the deeds of a family. */
#include "check.h"

#include "session/core/effects.h"

#include "vault/records.h"
#include "warden/deeds.h"

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

/* ---- deeds ---- */

static struct past_deeds now;

static bool in_past(void *userdata, size_t place)
{
	(void)userdata;
	return past_deeds_have(&now, place);
}

static size_t add(struct deeds *deeds, uint8_t which)
{
	char where[] = "s", text[] = "pay()";
	struct deed deed = {.digest = {which}, .session = 1, .cell = which, .where = where, .text = text};
	size_t place = 0;

	CHECK(deeds_place(&place, deeds, in_past, NULL) == 0 && place < DEEDS_MAX);
	if (deeds->all[place].serial) {
		past_deeds_forget(&now, place);
		deeds_forget(deeds, place);
	}
	CHECK(deeds_add(deeds, place, &deed) == 0);
	past_deeds_add(&now, place);
	return place;
}

static const struct deed *find(const struct deeds *deeds, const struct past_deeds *past, uint8_t which,
			       bool *unsure)
{
	const uint8_t digest[SHA256_SIZE] = {which};

	return deeds_find(unsure, deeds, past, digest);
}

static void test_deeds(void)
{
	struct deeds deeds = {.all = NULL};
	struct past_deeds before, kept;
	bool unsure;

	now = (struct past_deeds){.forgotten = 0};
	CHECK(!find(&deeds, &now, 1, &unsure) && !unsure);
	add(&deeds, 1);
	before = now;
	add(&deeds, 2);
	CHECK(!find(&deeds, &now, 1, &unsure) && !find(&deeds, &now, 2, &unsure));
	now = before; /* undone */
	CHECK(find(&deeds, &now, 2, &unsure) && !unsure && !find(&deeds, &now, 1, &unsure));
	past_deeds_read(&kept, past_deeds_bytes(&now));
	CHECK(!memcmp(&kept, &now, sizeof(now)));
	/* What is in the past is forgotten before what was undone. */
	for (int i = 0; i < DEEDS_MAX + 10; i++)
		add(&deeds, 3);
	CHECK(deeds.n == DEEDS_MAX && deeds.forgotten == 12);
	CHECK(find(&deeds, &now, 2, &unsure) && !unsure);
	CHECK(!find(&deeds, &now, 9, &unsure) && !unsure);
	/* Who goes back behind what is forgotten knows nothing for certain. */
	now = (struct past_deeds){.forgotten = 0};
	CHECK(!find(&deeds, &now, 9, &unsure) && unsure);
	CHECK(find(&deeds, &now, 3, &unsure));
	CHECK(!past_deeds_bytes(&now).data);
	deeds_deinit(&deeds);
	CHECK(deeds.n == 0 && deeds.size == 0);
}

int main(void)
{
	test_order();
	test_bound();
	test_deeds();
	return check_report();
}
