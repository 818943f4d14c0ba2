/* Numbers with units. All arithmetic is checked, and none uses floating point, so a printed value reads back the
 * same. */
#include "quantity.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* Printing prefers the first of equals. */
const struct unit duration_units[] = {
	{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"m", 60000000}, {"h", 3600000000}, {"d", 86400000000}, {NULL, 0},
};
const struct unit size_units[] = {
	{"", 1},	   {"B", 1},
	{"K", 1ULL << 10}, {"KiB", 1ULL << 10},
	{"M", 1ULL << 20}, {"MiB", 1ULL << 20},
	{"G", 1ULL << 30}, {"GiB", 1ULL << 30},
	{"T", 1ULL << 40}, {"TiB", 1ULL << 40},
	{NULL, 0},
};

const struct unit processor_units[] = {{"m", 1}, {"", 1000}, {NULL, 0}};

bool digits_parse(uint64_t *number, const char **at)
{
	const char *start = *at;

	for (*number = 0; isdigit((unsigned char)**at); ++*at) {
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, (uint64_t)(**at - '0'), number))
			return false;
	}
	return *at != start;
}

static const struct unit *unit_find(const struct unit *units, const char *name, size_t size)
{
	for (; units && units->name; units++) {
		if (strlen(units->name) == size && strncasecmp(units->name, name, size) == 0)
			return units;
	}
	return NULL;
}

/* The digits after the point. Six are enough for every value below a second and below a terabyte. */
static bool fraction_parse(uint64_t *fraction, uint64_t *scale, const char **at)
{
	for (; isdigit((unsigned char)**at) && *scale < 1000000; ++*at, *scale *= 10)
		*fraction = *fraction * 10 + (uint64_t)(**at - '0');
	return *scale > 1;
}

/* A decimal with its unit, as the "1.5h" of "1.5h 10m". *unitless: it has none, so no other may stand beside it.
 */
static bool component_parse(uint64_t *value, bool *unitless, const struct unit *units, uint64_t bare,
			    const char **at)
{
	uint64_t whole, fraction = 0, scale = 1;
	size_t letters;

	if (!digits_parse(&whole, at))
		return false;
	if (units && **at == '.') {
		++*at;
		if (!fraction_parse(&fraction, &scale, at))
			return false;
	}
	*at += strspn(*at, " ");
	letters = strcspn(*at, " .0123456789");
	*unitless = letters == 0;
	if (letters > 0) {
		const struct unit *unit = unit_find(units, *at, letters);

		if (!unit)
			return false;
		bare = unit->factor;
		*at += letters;
		*at += strspn(*at, " ");
	}
	return !__builtin_mul_overflow(whole, bare, &whole) &&
	       !__builtin_add_overflow(whole, fraction * bare / scale, value);
}

bool quantity_parse(uint64_t *valuep, const struct unit *units, uint64_t bare, const char *text)
{
	uint64_t total = 0, part;
	bool unitless = false;

	for (unsigned n = 0; *text || n == 0; n++) {
		if (unitless || !component_parse(&part, &unitless, units, bare, &text) || (unitless && n > 0) ||
		    __builtin_add_overflow(total, part, &total))
			return false;
	}
	*valuep = total;
	return true;
}

void quantity_format(char *text, size_t size, const struct unit *units, uint64_t value)
{
	struct unit best = {.name = "", .factor = 1};

	if (units)
		best = *units;
	for (; value > 0 && units && units->name; units++) {
		if (value % units->factor == 0 && units->factor > best.factor)
			best = *units;
	}
	(void)snprintf(text, size, "%" PRIu64 "%s", value / best.factor, best.name);
}
