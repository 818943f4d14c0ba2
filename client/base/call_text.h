/* Calls of functions as text, for people and models. */
#pragma once

#include "lair.h"

/* The call as code: pay(to="bob", amount=5). Each value is cut after @value_max bytes, so that none hides another,
 * and says so; SIZE_MAX: nothing is left out. Characters that a terminal would act on are replaced. @arguments:
 * msgpack; absent: only their size is told, which is @bytes. The caller's to free; NULL without memory. */
char *call_text(struct lair_text function, struct lair_text arguments, uint64_t bytes, size_t value_max);
/* The same of the arguments alone, as JSON, except the parts that are cut: {"to": "bob", "amount": 5}. */
char *call_arguments_text(struct lair_text arguments, size_t value_max);
