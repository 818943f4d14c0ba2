/* Which settings there are: one row each. */
#pragma once

#include "value.h"

struct key_table {
	const struct key *keys;
	size_t n;
};

#define KEYS_MAX 80

extern const struct key_table daemon_keys;  /* of struct config */
extern const struct key_table profile_keys; /* of struct profile */

/* NULL: it has none of that name. */
const struct key *key_find(const struct key_table *table, const char *name);

/* Two numbers of a profile of which the first must not be over the second. */
struct key_order {
	const char *low, *high;
	bool off_is_over; /* the first may not be off while the second is on */
};

extern const struct key_order profile_orders[];
extern const size_t n_profile_orders;
