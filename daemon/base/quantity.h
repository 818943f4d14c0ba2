/* Numbers with units, as people write and read them: 512M, 1.5s, 1h30m. */
#pragma once

#include "proto/base.h"

struct unit {
	const char *name; /* NULL ends an array of them */
	uint64_t factor;  /* at most 2^40 */
};

extern const struct unit duration_units[];  /* in microseconds */
extern const struct unit size_units[];	    /* in bytes */
extern const struct unit processor_units[]; /* in thousandths */

/* Decimal digits from *@at, which moves past them. False if there are none or too many. */
bool digits_parse(uint64_t *number, const char **at);

/* Parse all of @text: one number without unit, counted in @bare, or any number of decimals with one of @units
 * each (NULL: there are none). False if it is anything else or does not fit; then *valuep is untouched. */
bool quantity_parse(uint64_t *valuep, const struct unit *units, uint64_t bare, const char *text);

/* In the largest unit that divides the value. */
void quantity_format(char *text, size_t size, const struct unit *units, uint64_t value);
