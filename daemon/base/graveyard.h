/* A graveyard holds dead objects of one kind until the round ends and they are freed. A buried object has a link
 * of its own for this, so its other nodes may still be linked. */
#pragma once

#include "proto/list.h"

/* In the object; all zeroes before it is buried. */
struct grave {
	struct grave *next;
	bool buried;
};

struct graveyard {
	struct grave *first, **end;
	void (*free)(struct grave *grave);
};

/* @free frees the object that the grave is in. */
void graveyard_init(struct graveyard *yard, void (*free)(struct grave *grave));

/* To bury an object twice changes nothing. Returns whether it was the first time. */
bool graveyard_bury(struct graveyard *yard, struct grave *grave);

/* Free them all, in the order in which they were buried. */
void graveyard_empty(struct graveyard *yard);

#define graveyard_for_each(entry, yard, member)                                                                    \
	for (struct grave *entry##_at = (yard)->first;                                                             \
	     entry##_at && ((entry) = container_of(entry##_at, __typeof__(*(entry)), member), true);               \
	     entry##_at = entry##_at->next)
